"""Fetch sessions: who gets one, who loses it, and what is told in it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.failures import ApiError
from broker.fetch_sessions import (
    EVICTION_SECONDS,
    LARGEST_INT32,
    FetchContext,
    FetchSessions,
    IncrementalFetch,
    SessionlessFetch,
    next_epoch,
)
from broker.replica_manager import FetchSpec, PartitionRead
from network.protocol import ErrorCode
from storage.files import EMPTY_SLICE, Descriptor, Files, FileSlice
from storage.log_reader import LogRead

SOME_BYTES = FileSlice(Descriptor(Files(), -1, ""), 0, 100)


class Clock:
    def __init__(self) -> None:
        self.now = 5000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def specs(*partitions: int, offset: int = 0) -> list[FetchSpec]:
    return [FetchSpec("t", partition, offset, 1000, -1) for partition in partitions]


def found(
    spec: FetchSpec, *, high_watermark: int = 10, start: int = 0, has_data: bool = False
) -> PartitionRead:
    data = LogRead(
        SOME_BYTES if has_data else EMPTY_SLICE,
        start,
        high_watermark,
        high_watermark,
        high_watermark,
    )
    return PartitionRead(spec, data=data)


def failed(spec: FetchSpec) -> PartitionRead:
    return PartitionRead(spec, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def read_all(context: FetchContext) -> list[PartitionRead]:
    return [found(spec) for spec in context.specs]


def told(reads: Sequence[PartitionRead]) -> list[int]:
    return [read.spec.partition for read in reads]


def open_session(sessions: FetchSessions, *partitions: int, privileged: bool = False) -> int:
    context = sessions.context(0, 0, specs(*partitions), privileged=privileged)
    return context.answer(read_all(context)).session_id


def refusal(sessions: FetchSessions, session_id: int, epoch: int) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        sessions.context(session_id, epoch, [])
    return refused.value.code


def test_full_fetch_opens_a_session_of_a_positive_id() -> None:
    sessions = FetchSessions(10)
    ids = {open_session(sessions, 0, 1) for _ in range(5)}
    assert len(ids) == 5
    assert all(0 < one <= LARGEST_INT32 for one in ids)
    assert len(sessions) == 5
    assert sessions.cached_partitions == 10


def test_sessionless_fetch_opens_none_and_closes_the_one_it_names() -> None:
    sessions = FetchSessions(10)
    context = sessions.context(0, -1, specs(0))
    assert context.answer(read_all(context)).session_id == 0
    session_id = open_session(sessions, 0)
    assert isinstance(sessions.context(session_id, -1, specs(0)), SessionlessFetch)
    assert len(sessions) == 0
    assert sessions.cached_partitions == 0


def test_full_fetch_replaces_the_session_that_it_names() -> None:
    sessions = FetchSessions(10)
    first = open_session(sessions, 0)
    context = sessions.context(first, 0, specs(1))
    second = context.answer(read_all(context)).session_id
    assert first not in sessions
    assert second in sessions


def test_unknown_session_and_wrong_epochs_are_refused() -> None:
    sessions = FetchSessions(10)
    session_id = open_session(sessions, 0)
    for epoch in (1, 7, -2):
        assert refusal(sessions, session_id + 1, epoch) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    for epoch in (2, LARGEST_INT32, -2):
        assert refusal(sessions, session_id, epoch) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    sessions.context(session_id, 1, [])
    assert refusal(sessions, session_id, 1) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    sessions.context(session_id, 2, [])


def test_epochs_wrap_around_to_one() -> None:
    assert next_epoch(0) == 1
    assert next_epoch(LARGEST_INT32) == 1
    sessions = FetchSessions(10)
    session_id = open_session(sessions, 0)
    sessions._sessions[session_id].epoch = LARGEST_INT32
    sessions.context(session_id, LARGEST_INT32, [])
    assert isinstance(sessions.context(session_id, 1, []), IncrementalFetch)


def test_only_partitions_with_something_new_are_told() -> None:
    sessions = FetchSessions(10)
    session_id = open_session(sessions, 0, 1, 2, 3, 4)
    context = sessions.context(session_id, 1, [])
    by_partition = {spec.partition: spec for spec in context.specs}
    answer = context.answer(
        [
            found(by_partition[0]),
            found(by_partition[1], has_data=True),
            found(by_partition[2], high_watermark=11),
            found(by_partition[3], start=1),
            failed(by_partition[4]),
        ]
    )
    assert (answer.session_id, answer.error) == (session_id, ErrorCode.NONE)
    assert told(answer.reads) == [1, 2, 3, 4]


def test_partition_is_told_again_when_its_error_has_gone() -> None:
    sessions = FetchSessions(10)
    session_id = open_session(sessions, 0)
    outcomes = []
    for epoch, is_broken in enumerate([False, True, True, False, False], start=1):
        context = sessions.context(session_id, epoch, [])
        reads = [failed(spec) if is_broken else found(spec) for spec in context.specs]
        outcomes.append(told(context.answer(reads).reads))
    assert outcomes == [[], [0], [0], [0], []]


def test_told_partitions_go_to_the_end_of_the_line() -> None:
    sessions = FetchSessions(10)
    session_id = open_session(sessions, 0, 1, 2)
    first = sessions.context(session_id, 1, [])
    first.answer([found(spec, has_data=spec.partition == 0) for spec in first.specs])
    second = sessions.context(session_id, 2, [])
    assert [spec.partition for spec in second.specs] == [1, 2, 0]


def test_partitions_are_added_changed_and_forgotten() -> None:
    sessions = FetchSessions(10)
    session_id = open_session(sessions, 0, 1, 2)
    context = sessions.context(
        session_id, 1, [*specs(1, offset=7), *specs(3)], [("t", 0), ("unknown", 9)]
    )
    assert {(spec.partition, spec.offset) for spec in context.specs} == {(1, 7), (2, 0), (3, 0)}
    assert told(context.answer(read_all(context)).reads) == [3]
    assert sessions.cached_partitions == 3


def test_session_that_loses_its_last_partition_is_closed() -> None:
    sessions = FetchSessions(10)
    session_id = open_session(sessions, 0)
    context = sessions.context(session_id, 1, specs(5), [("t", 0), ("t", 5)])
    assert isinstance(context, SessionlessFetch)
    answer = context.answer(read_all(context))
    assert (told(answer.reads), answer.session_id) == ([5], 0)
    assert session_id not in sessions


def test_answer_to_a_request_that_was_overtaken_is_an_error() -> None:
    sessions = FetchSessions(10)
    session_id = open_session(sessions, 0)
    parked = sessions.context(session_id, 1, [])
    overtaking = sessions.context(session_id, 2, [])
    answer = parked.answer([found(parked.specs[0], high_watermark=99)])
    assert answer.error == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert (list(answer.reads), answer.session_id) == ([], session_id)
    later = overtaking.answer([found(overtaking.specs[0], high_watermark=99)])
    assert told(later.reads) == [0]


def test_session_that_is_evicted_while_a_fetch_waits_still_answers_it(clock: Clock) -> None:
    sessions = FetchSessions(1, clock)
    session_id = open_session(sessions, 0)
    parked = sessions.context(session_id, 1, [])
    assert open_session(sessions, 1, privileged=True) != 0
    answer = parked.answer([found(parked.specs[0], has_data=True)])
    assert (answer.error, told(answer.reads)) == (ErrorCode.NONE, [0])
    assert refusal(sessions, session_id, 2) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_no_slots_no_sessions() -> None:
    assert open_session(FetchSessions(0), 0) == 0


def test_full_cache_gives_no_session_while_all_are_in_use(clock: Clock) -> None:
    sessions = FetchSessions(2, clock)
    open_session(sessions, 0)
    open_session(sessions, 0)
    assert open_session(sessions, *range(50)) == 0
    assert sessions.evictions == 0


def test_stale_session_makes_room_for_anybody(clock: Clock) -> None:
    sessions = FetchSessions(2, clock)
    stale = open_session(sessions, *range(10))
    used = open_session(sessions, *range(10))
    clock.now += EVICTION_SECONDS
    assert open_session(sessions, 0) == 0
    sessions.context(used, 1, [])
    clock.now += 0.001
    assert open_session(sessions, 0) != 0
    assert stale not in sessions
    assert used in sessions
    assert sessions.evictions == 1


def test_larger_session_takes_the_place_of_the_smallest_that_is_old_enough(clock: Clock) -> None:
    sessions = FetchSessions(3, clock)
    small = open_session(sessions, 0)
    large = open_session(sessions, 0, 1, 2)
    clock.now += EVICTION_SECONDS + 1
    for one in (small, large):
        sessions.context(one, 1, [])
    young = open_session(sessions, 0)
    assert open_session(sessions, 5) == 0, "equal size is not larger"
    assert open_session(sessions, 5, 6) != 0
    assert small not in sessions
    assert large in sessions
    assert young in sessions


def test_follower_takes_the_place_of_a_client_but_not_the_other_way_round(clock: Clock) -> None:
    sessions = FetchSessions(1, clock)
    client = open_session(sessions, *range(10))
    follower = open_session(sessions, 0, privileged=True)
    assert client not in sessions
    assert open_session(sessions, *range(10)) == 0
    assert open_session(sessions, *range(10), privileged=True) == 0, "young ones are safe"
    clock.now += EVICTION_SECONDS + 1
    sessions.context(follower, 1, [])
    assert open_session(sessions, *range(10)) == 0, "privilege outranks size"
    assert open_session(sessions, 0, 1, privileged=True) != 0
    assert follower not in sessions


def test_session_that_has_grown_is_ranked_by_its_new_size(clock: Clock) -> None:
    sessions = FetchSessions(2, clock)
    grown = open_session(sessions, 0)
    small = open_session(sessions, 0, 1)
    clock.now += EVICTION_SECONDS + 1
    sessions.context(grown, 1, specs(1, 2, 3))
    sessions.context(small, 1, [])
    assert sessions.cached_partitions == 6
    assert open_session(sessions, *range(5)) != 0
    assert grown in sessions
    assert small not in sessions


# --- a model: whoever merges the answers sees what a full fetch would show -----------------------

State = tuple[int, int, bool]


@dataclass
class Reader:
    """A client that merges what it is told into its picture of its partitions."""

    sessions: FetchSessions
    session_id: int = 0
    epoch: int = 0
    wanted: dict[int, None] = field(default_factory=dict)
    seen: dict[int, State] = field(default_factory=dict)
    added: set[int] = field(default_factory=set)
    forgotten: set[int] = field(default_factory=set)

    def want(self, partition: int) -> None:
        if partition not in self.wanted:
            self.wanted[partition] = None
            self.added.add(partition)
            self.forgotten.discard(partition)

    def forget(self, partition: int) -> None:
        if partition in self.wanted:
            del self.wanted[partition]
            self.seen.pop(partition, None)
            self.added.discard(partition)
            self.forgotten.add(partition)

    def fetch(self, states: dict[int, State]) -> None:
        is_full = self.epoch == 0
        asked = self.wanted if is_full else self.added
        gone = () if is_full else [("t", one) for one in self.forgotten]
        try:
            context = self.sessions.context(self.session_id, self.epoch, specs(*asked), gone)
        except ApiError:
            self.session_id = self.epoch = 0
            self.fetch(states)
            return
        answer = context.answer([read_state(spec, states) for spec in context.specs])
        for read in answer.reads:
            self.seen[read.spec.partition] = as_state(read)
        self.added, self.forgotten = set(), set()
        self.session_id = answer.session_id
        self.epoch = next_epoch(self.epoch) if answer.session_id else 0


def read_state(spec: FetchSpec, states: dict[int, State]) -> PartitionRead:
    high_watermark, start, is_broken = states[spec.partition]
    if is_broken:
        return failed(spec)
    return found(spec, high_watermark=high_watermark, start=start)


def as_state(read: PartitionRead) -> State:
    if read.data is None:
        return (-1, -1, True)
    return (read.data.high_watermark, read.data.start_offset, False)


class World:
    """Some partitions, and readers that fetch them in sessions."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.clock = Clock()
        self.sessions = FetchSessions(slots, self.clock)
        self.readers = [Reader(self.sessions) for _ in range(4)]
        self.states: dict[int, State] = dict.fromkeys(range(6), (0, 0, False))

    def append(self, partition: int, _reader: int) -> None:
        high_watermark, start, is_broken = self.states[partition]
        self.states[partition] = (high_watermark + 1, start, is_broken)

    def trim(self, partition: int, _reader: int) -> None:
        high_watermark, _, is_broken = self.states[partition]
        self.states[partition] = (high_watermark, high_watermark, is_broken)

    def break_or_mend(self, partition: int, _reader: int) -> None:
        high_watermark, start, is_broken = self.states[partition]
        self.states[partition] = (high_watermark, start, not is_broken)

    def want(self, partition: int, reader: int) -> None:
        self.readers[reader].want(partition)

    def forget(self, partition: int, reader: int) -> None:
        self.readers[reader].forget(partition)

    def pass_time(self, _partition: int, _reader: int) -> None:
        self.clock.now += 50

    def fetch(self, _partition: int, reader: int) -> None:
        client = self.readers[reader]
        client.fetch(self.states)
        assert client.seen == {
            one: as_state(read_state(specs(one)[0], self.states)) for one in client.wanted
        }

    def check_books(self) -> None:
        sessions = self.sessions
        kept = sessions._sessions.values()
        assert len(sessions) <= self.slots
        assert sessions.cached_partitions == sum(len(one.partitions) for one in kept)
        ranks = {one.rank for one in kept}
        for evictable in (sessions._evictable_by_all, sessions._evictable_by_privileged):
            assert evictable == sorted(evictable)
            assert len(set(evictable)) == len(evictable)
            assert set(evictable) <= ranks
        times = [one.last_used for one in kept]
        assert times == sorted(times)


steps = st.tuples(
    st.sampled_from(
        ["append", "trim", "break_or_mend", "want", "want", "forget", "pass_time", "fetch", "fetch"]
    ),
    st.integers(0, 5),
    st.integers(0, 3),
)


@given(st.lists(steps, max_size=120), st.integers(0, 4))
def test_merged_answers_show_what_a_full_fetch_would(
    script: list[tuple[str, int, int]], slots: int
) -> None:
    world = World(slots)
    for step, partition, reader in script:
        getattr(world, step)(partition, reader)
        world.check_books()
