"""Random interleavings of everything that can happen to a group, and what must hold throughout.

One generation at a time; every member of a stable group holds what was assigned in that
generation; no partition has two owners in one generation; committed offsets move by commits only;
nobody waits for ever.
"""

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from broker.groups.states import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, STABLE
from network.protocol import ErrorCode
from tests.support.groups import TestCoordinator, make_settings
from tests.unit.broker.groups.simulated_member import PARTITIONS, SimulatedMember

MOST_MEMBERS = 6
STEPS = 400
RUNS = 12
SOAK_RUNS = 3000
SHORT_SOAK_RUNS = 60

PREFERENCES = (("range",), ("range", "sticky"), ("sticky", "range"))


class GroupModel:
    """Members that come, work, fall silent and return, and a coordinator that restarts."""

    def __init__(self, directory: Path, seed: int) -> None:
        self._random = Random(seed)
        self._groups = TestCoordinator(
            directory, make_settings(initial_delay_ms=500, max_size=MOST_MEMBERS - 1)
        )
        self._groups.lead()
        self._members: list[SimulatedMember] = []
        self._owners: dict[tuple[int, int], str] = {}
        self._committed: dict[int, int] = {}
        self._last_assigned = 0
        self._actions: dict[Callable[[], None], int] = {
            self._somebody_goes_on: 30,
            self._everybody_goes_on: 30,
            self._somebody_commits: 20,
            self._somebody_comes: 10,
            self._time_passes: 8,
            self._stale_request_arrives: 3,
            self._somebody_joins_out_of_turn: 3,
            self._stranger_asks: 2,
            self._somebody_leaves: 3,
            self._somebody_falls_silent: 2,
            self._coordinator_restarts: 2,
        }
        self.trace: list[str] = []
        self.seen: Counter[str] = Counter()

    def run(self, steps: int) -> None:
        actions, weights = list(self._actions), list(self._actions.values())
        for action in self._random.choices(actions, weights, k=steps):
            self.trace.append(action.__name__)
            action()
            self._check_invariants()
        self._check_that_nobody_waits_for_ever()
        self._groups.logs.close()

    # What happens

    def _somebody_goes_on(self) -> None:
        for member in self._somebody():
            member.step()

    def _everybody_goes_on(self) -> None:
        for _ in range(self._random.randrange(1, 4)):
            for member in self._members:
                member.step()
            self._groups.settle()

    def _somebody_commits(self) -> None:
        for member in self._somebody():
            for partition, offset in (member.commit() or {}).items():
                assert offset > self._committed.get(partition, 0)
                self._committed[partition] = offset
                self.seen["commit"] += 1

    def _somebody_comes(self) -> None:
        if len(self._members) < MOST_MEMBERS:
            instance = self._random.choice([None, None, "one", "two"])
            needs_known_id = self._random.random() < 0.7
            preference = self._random.choice(PREFERENCES)
            self._members.append(
                SimulatedMember(self._groups, self._told, instance, needs_known_id, preference)
            )

    def _time_passes(self) -> None:
        self._groups.advance(self._random.choice([0.0, 0.1, 0.6, 3.0, 9.0, 11.0, 61.0]))

    def _somebody_joins_out_of_turn(self) -> None:
        """As a leader does that has seen topics change, or a client that lost its answer."""
        for member in self._somebody():
            member.syncing = None
            member.join()

    def _somebody_leaves(self) -> None:
        for member in self._somebody():
            member.leave()
            self._members.remove(member)

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
        group = self._groups.coordinator.registry.groups.get("g")
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

    def _coordinator_restarts(self) -> None:
        self._groups.restart()
        self._groups.settle()

    # What must hold

    def _check_invariants(self) -> None:
        self._check_offsets()
        for group in self._groups.coordinator.registry:
            self.seen[group.state.value] += 1
            assert (group.state is EMPTY) <= (not group.members)
            assert (group.state in (STABLE, COMPLETING_REBALANCE)) <= bool(group.members)
            assert (group.leader_id in group.members) == bool(group.members)
            assert (group.pending_join is not None) == (group.state is PREPARING_REBALANCE)
            waiting = sum(one.is_awaiting_join for one in group.members.values())
            assert waiting == 0 or group.state is PREPARING_REBALANCE
            assert group.has_all_joined == (
                waiting == len(group.members) and not group.pending_members
            )
            for instance, member_id in group.static_members.items():
                assert group.members[member_id].group_instance_id == instance
            assert len(group.members) <= MOST_MEMBERS - 1
            if group.state is STABLE:
                held = [one for member in group.members.values() for one in member.assignment]
                assert sorted(held) == list(range(len(PARTITIONS)))
                assert all(one.timer is not None for one in group.members.values())

    def _check_offsets(self) -> None:
        for partition in range(len(PARTITIONS)):
            expected = self._committed.get(partition)
            assert self._groups.committed(("t", partition)) == expected

    def _told(self, generation: int, owner: str, partitions: tuple[int, ...]) -> None:
        """A member was given partitions: in this generation they are nobody else's."""
        self.seen["assignment"] += 1
        for partition in partitions:
            assert self._owners.setdefault((generation, partition), owner) == owner

    def _check_that_nobody_waits_for_ever(self) -> None:
        for _ in range(80):  # rebalances, sessions and the first join of new members all time out
            self._groups.advance(5.0)
        for member in self._members:
            assert member.joining != []
            assert member.syncing != []

    def _somebody(self) -> list[SimulatedMember]:
        return [self._random.choice(self._members)] if self._members else []


def run(directory: Path, seeds: range) -> None:
    seen: Counter[str] = Counter()
    for seed in seeds:
        model = GroupModel(directory / str(seed), seed)
        try:
            model.run(STEPS)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, after {' '.join(model.trace)}") from error
        seen += model.seen
    # Interleavings that lead nowhere would show nothing.
    wanted = ("commit", "assignment", "stale", "Empty", "Stable", "PreparingRebalance")
    assert all(seen[one] > len(seeds) for one in wanted), seen


def test_random_interleavings_keep_the_invariants(tmp_path: Path) -> None:
    run(tmp_path, range(RUNS))


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_thousands_of_random_interleavings_keep_the_invariants(tmp_path: Path) -> None:
    short = os.environ.get("BARNABAS_SOAK") == "short"
    first = Random().randrange(1 << 32)
    run(tmp_path, range(first, first + (SHORT_SOAK_RUNS if short else SOAK_RUNS)))
