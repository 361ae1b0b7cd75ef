"""What must hold of a group at any moment.

One generation at a time; every member of a stable group holds what its leader assigned to it in
that generation, also after a restart; no partition has two owners in one generation; only a
rebalance lets members wait, and only those are in a generation who came to it.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping

from broker.groups.group import Group
from broker.groups.results import JoinResult
from broker.groups.states import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, STABLE
from network.protocol import ErrorCode
from tests.support.groups import TestCoordinator
from tests.unit.broker.groups.simulated_member import PARTITIONS


class GroupInvariants:
    """Hears what members are told, and looks at the groups of a coordinator."""

    def __init__(self, groups: TestCoordinator, seen: Counter[str], max_size: int) -> None:
        self._groups = groups
        self._seen = seen
        self._max_size = max_size
        self._owners: dict[tuple[int, int], str] = {}
        self._assigned: dict[int, Mapping[str, bytes]] = {}
        self._stable: dict[int, dict[str, bytes]] = {}
        self._joins: list[list[JoinResult]] = []
        self._joined: defaultdict[int, set[str]] = defaultdict(set)

    # What members do and are told

    def asks_to_join(self, answers: list[JoinResult]) -> None:
        self._joins.append(answers)

    def assigns(self, generation: int, assignment: Mapping[str, bytes]) -> None:
        """A leader whose word counts has spoken."""
        self._assigned[generation] = assignment

    def is_given(
        self, generation: int, member_id: str, instance: str | None, partitions: tuple[int, ...]
    ) -> None:
        """They are what the leader meant for it, and in this generation nobody else's."""
        self._seen["assignment"] += 1
        if instance is None:
            assert bytes(partitions) == self._assigned[generation].get(member_id, b"")
        for partition in partitions:
            owner = instance or member_id
            assert self._owners.setdefault((generation, partition), owner) == owner

    # What holds at any moment

    def check(self) -> None:
        for group in self._groups.coordinator.registry:
            self._seen[group.state.value] += 1
            self._check_state(group)
            self._check_waiting(group)
            self._check_members(group)
            if group.state is STABLE:
                self._check_stable(group)

    def check_settled(self) -> None:
        """Once all answers are out: nobody is in a generation who did not come to it."""
        for answers in self._joins:
            for answer in answers:
                if answer.error == ErrorCode.NONE:
                    self._joined[answer.generation].add(answer.member_id)
        self._joins = [answers for answers in self._joins if not answers]
        for group in self._groups.coordinator.registry:
            came = self._joined[group.generation]
            if group.state in (COMPLETING_REBALANCE, STABLE):
                absent = {one.member_id for one in group.members.values() if not one.is_static}
                assert absent <= came
            if group.state is COMPLETING_REBALANCE:
                assert group.leader_id in came, "nobody will assign anything"

    def _check_state(self, group: Group) -> None:
        assert (group.state is EMPTY) <= (not group.members)
        assert (group.state in (STABLE, COMPLETING_REBALANCE)) <= bool(group.members)
        assert (group.leader_id in group.members) == bool(group.members)
        assert (group.pending_join is not None) == (group.state is PREPARING_REBALANCE)
        assert group.pending_join is None or group.pending_join.timer.pending

    def _check_waiting(self, group: Group) -> None:
        members = group.members.values()
        waiting = sum(one.is_awaiting_join for one in members)
        assert waiting == 0 or group.state is PREPARING_REBALANCE
        assert group.has_all_joined == (waiting == len(members) and not group.pending_members)
        if any(one.sync_reply is not None for one in members):
            assert group.state is COMPLETING_REBALANCE
            assert group.members[group.leader_id or ""].sync_reply is None

    def _check_members(self, group: Group) -> None:
        for instance, member_id in group.static_members.items():
            assert group.members[member_id].group_instance_id == instance
        assert len(group.members) <= self._max_size
        assert all(timer.pending for timer in group.pending_members.values())
        for member in group.members.values():
            assert member.timer is not None
            assert member.timer.pending or member.is_alive_by_waiting

    def _check_stable(self, group: Group) -> None:
        holders = {
            one.group_instance_id or one.member_id: one.assignment for one in group.members.values()
        }
        assert sorted(b"".join(holders.values())) == list(range(len(PARTITIONS)))
        assert self._stable.setdefault(group.generation, holders) == holders
