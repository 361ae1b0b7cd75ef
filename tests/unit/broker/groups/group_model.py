"""Everything that can happen to a group, at random, and what must hold throughout.

Owns what happens, and what clients may expect of it; what must hold of a group at any moment is
for group_invariants.py.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from broker.groups.group import Group
from broker.groups.states import EMPTY, PREPARING_REBALANCE, STABLE
from network.protocol import ErrorCode
from tests.support.groups import TestCoordinator, make_settings
from tests.unit.broker.groups.group_invariants import GroupInvariants
from tests.unit.broker.groups.simulated_member import PARTITIONS, SimulatedMember

MOST_MEMBERS = 6
MAX_SIZE = MOST_MEMBERS - 1
# Half a session; so many of them outlast a rebalance, a silent leader and whoever follows it.
HEARTBEAT_SECONDS = 5.0
LONG_WHILE = 24

PREFERENCES = (("range",), ("range", "sticky"), ("sticky", "range"))


class GroupModel:
    """Members that come, work, fall silent and return, and a coordinator that restarts."""

    def __init__(self, directory: Path, seed: int) -> None:
        self._random = Random(seed)
        settings = make_settings(initial_delay_ms=500, max_size=MAX_SIZE)
        self._groups = TestCoordinator(directory, settings)
        self._groups.lead()
        self._members: list[SimulatedMember] = []
        self._committed: dict[int, int] = {}
        # Who takes a static member's place in a stable group is not written down, as in Kafka 2.5:
        # a coordinator that was restarted knows the member before it, which may have been asleep.
        self._revived: set[SimulatedMember] = set()
        self.seen: Counter[str] = Counter()
        self._invariants = GroupInvariants(self._groups, self.seen, MAX_SIZE)
        self._actions: dict[Callable[[], None], int] = {
            self._somebody_goes_on: 30,
            self._everybody_goes_on: 30,
            self._somebody_commits: 20,
            self._somebody_comes: 10,
            self._time_passes: 8,
            self._stale_request_arrives: 3,
            self._replaced_member_asks: 3,
            self._somebody_joins_out_of_turn: 3,
            self._somebody_gets_busy_or_done: 3,
            self._stranger_asks: 2,
            self._somebody_leaves: 3,
            self._somebody_falls_silent: 2,
            self._coordinator_restarts: 2,
            self._long_while_passes: 1,
        }
        self.trace: list[str] = []

    def run(self, steps: int) -> None:
        actions, weights = list(self._actions), list(self._actions.values())
        for action in self._random.choices(actions, weights, k=steps):
            self.trace.append(action.__name__)
            action()
            self._invariants.check()
            self._check_offsets()
        self._check_that_silence_ends_everything()
        self._check_that_a_new_member_gets_everything()
        self._groups.logs.close()

    # What happens

    def _somebody_goes_on(self) -> None:
        for member in self._somebody():
            member.step()

    def _everybody_goes_on(self) -> None:
        for _ in range(self._random.randrange(1, 4)):
            self._everybody_steps()

    def _somebody_commits(self) -> None:
        for member in self._somebody():
            is_allowed = self._may_commit(member)
            wanted = bool(member.owned) and not member.is_dead and member.joining is None
            acknowledged = member.commit()
            assert (acknowledged is not None) == (wanted and is_allowed)
            for partition, offset in (acknowledged or {}).items():
                assert offset > self._committed.get(partition, 0) or member in self._revived
                self._committed[partition] = offset
                self.seen["commit"] += 1

    def _somebody_comes(self) -> None:
        if len(self._members) < MOST_MEMBERS:
            instance = self._random.choice([None, None, "one", "two"])
            needs_known_id = self._random.random() < 0.7
            preference = self._random.choice(PREFERENCES)
            self._members.append(
                SimulatedMember(
                    self._groups, self._invariants, instance, needs_known_id, preference
                )
            )

    def _time_passes(self) -> None:
        self._groups.advance(self._random.choice([0.0, 0.1, 0.6, 3.0, 9.0, 11.0, 61.0]))

    def _somebody_joins_out_of_turn(self) -> None:
        """As a leader does that has seen topics change, or a client that lost its answer."""
        for member in self._somebody():
            member.syncing = None
            member.join()

    def _somebody_gets_busy_or_done(self) -> None:
        """As a client that is slow to process what it has: it does not come to rebalances."""
        for member in self._somebody():
            member.is_busy = not member.is_busy

    def _somebody_leaves(self) -> None:
        for member in self._somebody():
            member.leave()
            self._members.remove(member)
            group = self._group
            assert group is None or member.member_id not in group.members
            assert group is None or member.member_id not in group.pending_members

    def _somebody_falls_silent(self) -> None:
        for member in self._somebody():
            self._members.remove(member)

    def _stranger_asks(self) -> None:
        """None of this may do any harm."""
        generation = self._random.randrange(-1, 9)
        groups = self._groups
        assert groups.heartbeat("stranger", generation) == ErrorCode.UNKNOWN_MEMBER_ID
        assert groups.sync("stranger", generation, {})[0].error == ErrorCode.UNKNOWN_MEMBER_ID
        assert groups.leave(("stranger", None)).members == [ErrorCode.UNKNOWN_MEMBER_ID]
        (refused,) = groups.join("stranger", protocols={"range": b"", "sticky": b""})
        assert refused.error == ErrorCode.UNKNOWN_MEMBER_ID

    def _stale_request_arrives(self) -> None:
        """Late, from an earlier generation: it is refused, whoever sends it."""
        group = self._group
        if group is None or group.generation == 0:
            return
        stale = group.generation - 1
        for member in self._somebody():
            (answer,) = self._groups.commit(
                {PARTITIONS[0]: 0}, member_id=member.member_id, generation=stale
            )
            assert answer[PARTITIONS[0]] != ErrorCode.NONE
            assert self._groups.heartbeat(member.member_id, stale) != ErrorCode.NONE
            assert self._groups.sync(member.member_id, stale, {})[0].error != ErrorCode.NONE
            self.seen["stale"] += 1

    def _replaced_member_asks(self) -> None:
        """A static member whose place another one has taken is told so, whatever it asks."""
        for member in self._members:
            if not self._is_replaced(member):
                continue
            identity, groups = (member.member_id, member.instance), self._groups
            who = {"member_id": member.member_id, "instance": member.instance}
            generation = member.generation
            (answer,) = groups.commit({PARTITIONS[0]: 0}, generation=generation, **who)  # type: ignore[arg-type]
            errors = [
                *answer.values(),
                groups.heartbeat(identity[0], generation, instance=identity[1]),
                groups.sync(identity[0], generation, {}, instance=identity[1])[0].error,
                *groups.leave(identity).members,
            ]
            assert errors == [ErrorCode.FENCED_INSTANCE_ID] * 4
            self.seen["fenced"] += 1

    def _coordinator_restarts(self) -> None:
        self._revived.update(one for one in self._members if self._is_replaced(one))
        self._groups.restart()
        self._groups.settle()

    def _long_while_passes(self) -> None:
        """Once all have found together nothing happens any more."""
        self._all_find_together()
        self._all_find_together()

    def _all_find_together(self) -> None:
        """Everybody who is there sends heartbeats and comes when called."""
        self._everybody_steps()  # nearly a session may have passed since the last heartbeats
        group = self._group
        was_quiet = group is not None and self._is_quiet(group)
        generation = None if group is None else group.generation
        for _ in range(LONG_WHILE):
            self._groups.advance(HEARTBEAT_SECONDS)
            self._everybody_steps()
            self._everybody_steps()
        group = self._group
        willing = [one for one in self._members if not (one.is_busy or one.is_dead)]
        if not willing:
            return
        assert group is not None
        # Where all who are in it are busy, and whoever else there is is refused, it waits.
        assert group.state is STABLE or not any(one.member_id in group.members for one in willing)
        for member in willing:
            is_in = member.member_id in group.members
            # A coordinator that was restarted knows but the chosen protocol of each member: until
            # they join again, as in Kafka, it refuses one that does not have that.
            is_refused = group.protocol not in member.preference
            assert is_in or is_refused or len(group.members) == MAX_SIZE
            assert not is_in or member.generation == group.generation
        self.seen["together"] += 1
        if was_quiet:
            assert group.generation == generation, "there was no reason to rebalance"
            self.seen["quiet"] += 1

    # What must hold

    def _check_offsets(self) -> None:
        for partition in range(len(PARTITIONS)):
            expected = self._committed.get(partition)
            assert self._groups.committed(("t", partition)) == expected

    def _check_that_silence_ends_everything(self) -> None:
        for _ in range(80):  # rebalances, sessions and the first join of new members all time out
            self._groups.advance(5.0)
        for member in self._members:
            assert member.joining != []
            assert member.syncing != []
        for group in self._groups.coordinator.registry:
            assert group.state is EMPTY
            assert not group.pending_members

    def _check_that_a_new_member_gets_everything(self) -> None:
        member = SimulatedMember(self._groups, self._invariants, None, True, PREFERENCES[0])
        for _ in range(5):
            member.step()
            self._groups.advance(1.0)
        assert member.owned == tuple(range(len(PARTITIONS)))

    @property
    def _group(self) -> Group | None:
        return self._groups.coordinator.registry.groups.get("g")

    def _may_commit(self, member: SimulatedMember) -> bool:
        """Whoever is in the current generation, unless its assignment is just being made."""
        group = self._group
        return (
            group is not None
            and not self._is_replaced(member)
            and member.member_id in group.members
            and member.generation == group.generation
            and group.state in (STABLE, PREPARING_REBALANCE)
        )

    def _is_replaced(self, member: SimulatedMember) -> bool:
        group = self._group
        if group is None or member.instance is None or not member.member_id:
            return False
        return group.static_members.get(member.instance, member.member_id) != member.member_id

    def _is_quiet(self, group: Group) -> bool:
        """Everybody is in it, has what it was assigned, and nobody else is."""
        settled = {
            one.member_id
            for one in self._members
            if one.generation == group.generation and one.joining is None and one.syncing is None
        }
        return (
            group.state is STABLE
            and len(settled) == len(self._members)
            and settled == set(group.members)
            and not group.pending_members
        )

    def _everybody_steps(self) -> None:
        for member in self._members:
            member.step()
        self._groups.settle()
        self._invariants.check_settled()

    def _somebody(self) -> list[SimulatedMember]:
        return [self._random.choice(self._members)] if self._members else []
