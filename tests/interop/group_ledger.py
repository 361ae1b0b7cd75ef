"""What the consumers of a group did, and whether it fits what the group has committed.

Every record is processed at least once. And exactly once per committed range: what a group commits
of a partition only ever grows, and whoever gets the partition begins where the last commit before
that ends. So each committed range was processed by the one consumer that committed it, and the
ranges lie end to end; what the previous owner did beyond is done again and committed then.

This shows for manual and automatic commits alike: the commits are those that `__consumer_offsets`
holds, the beginnings are those that the consumers saw.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

Ranges = Mapping[int, tuple[int, int]]


@dataclass(frozen=True)
class Commit:
    """A committed offset, and when the coordinator got it."""

    offset: int
    at_ms: int


@dataclass
class Tenure:
    """What one consumer did of a partition from getting it to losing it: [start, end)."""

    assigned_ms: int
    begun_ms: int
    start: int
    end: int
    acknowledged: int

    @classmethod
    def beginning_at(cls, offset: int, assigned_ms: int) -> "Tenure":
        return cls(assigned_ms, now_ms(), offset, offset, offset)


@dataclass
class Ledger:
    """What the consumers of a group say that they did, by partition."""

    processed: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    tenures: dict[int, list[Tenure]] = field(default_factory=lambda: defaultdict(list))
    acknowledged: dict[int, list[tuple[int, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    failures: list[BaseException] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, partition: int, tenure: Tenure) -> None:
        with self._lock:
            self.tenures[partition].append(tenure)

    def process(self, partition: int, offset: int) -> None:
        with self._lock:
            self.processed[partition].add(offset)

    def acknowledge(self, partition: int, start: int, end: int) -> None:
        with self._lock:
            self.acknowledged[partition].append((start, end))

    @property
    def count(self) -> int:
        with self._lock:
            return sum(map(len, self.processed.values()))


class Work:
    """What one consumer has in hand."""

    def __init__(self, ledger: Ledger, has_begun: threading.Event) -> None:
        self._ledger = ledger
        self._has_begun = has_begun
        self._assigned_ms: dict[int, int] = {}
        self._tenures: dict[int, Tenure] = {}

    def assigned(self, partitions: Collection[int]) -> None:
        for partition in partitions:
            assert partition not in self._assigned_ms, f"{partition} was never taken away"
            self._assigned_ms[partition] = now_ms()

    def process(self, partition: int, offset: int) -> None:
        tenure = self._tenures.get(partition)
        if tenure is None:
            assert partition in self._assigned_ms, f"{partition} is not assigned"
            tenure = Tenure.beginning_at(offset, self._assigned_ms[partition])
            self._tenures[partition] = tenure
            self._ledger.begin(partition, tenure)
        assert tenure.end == offset, f"{partition}: {offset} comes where {tenure.end} is next"
        tenure.end += 1
        self._ledger.process(partition, offset)
        self._has_begun.set()

    def to_commit(self, only: Collection[int] | None = None) -> Ranges:
        """What was processed and is not committed."""
        return {
            partition: (tenure.acknowledged, tenure.end)
            for partition, tenure in list(self._tenures.items())
            if tenure.acknowledged < tenure.end and (only is None or partition in only)
        }

    def committed(self, ranges: Ranges) -> None:
        """The broker has acknowledged it; partitions may have been taken away meanwhile."""
        for partition, (start, end) in ranges.items():
            self._ledger.acknowledge(partition, start, end)
            tenure = self._tenures.get(partition)
            if tenure is not None and tenure.acknowledged == start:
                tenure.acknowledged = end

    def lost(self, partitions: Collection[int]) -> None:
        """Another consumer will do again what is not committed."""
        for partition in partitions:
            self._assigned_ms.pop(partition, None)
            self._tenures.pop(partition, None)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def check(
    ledger: Ledger,
    produced: Mapping[int, int],
    commits: Mapping[int, Sequence[Commit]],
    *,
    answers_may_be_lost: bool = False,
) -> None:
    """All that must hold of the work of a group that is done."""
    assert ledger.failures == []
    for partition, count in produced.items():
        assert ledger.processed[partition] == set(range(count))
        check_commits(commits[partition], count)
        check_handovers(ledger.tenures[partition], commits[partition])
        check_acknowledged(
            ledger.acknowledged[partition],
            commits[partition],
            answers_may_be_lost=answers_may_be_lost,
        )


def check_commits(commits: Sequence[Commit], count: int) -> None:
    """They never go back and end with the last record."""
    offsets = [commit.offset for commit in commits]
    assert offsets == sorted(offsets), f"a commit goes back: {offsets}"
    assert offsets[-1] == count, f"{count} records, committed up to {offsets[-1]}"


def check_handovers(tenures: Sequence[Tenure], commits: Sequence[Commit]) -> None:
    """Each owner begins where the last commit before ends, which its predecessor has processed."""
    previous_end = 0
    for tenure in sorted(tenures, key=lambda one: one.assigned_ms):
        before = [one.offset for one in commits if one.at_ms < tenure.assigned_ms]
        # Milliseconds are too coarse to tell a commit just before from one just after.
        meanwhile = [
            one.offset for one in commits if tenure.assigned_ms <= one.at_ms <= tenure.begun_ms
        ]
        allowed = [before[-1] if before else 0, *meanwhile]
        assert tenure.start in allowed, f"{tenure} begins at none of {allowed}"
        assert tenure.start <= previous_end, f"[{previous_end}, {tenure.start}) was never processed"
        previous_end = tenure.end
    assert commits[-1].offset <= previous_end, f"{commits[-1]} is beyond {previous_end}"


def check_acknowledged(
    acknowledged: Sequence[tuple[int, int]],
    commits: Sequence[Commit],
    *,
    answers_may_be_lost: bool = False,
) -> None:
    """Ranges that consumers were told are committed lie end to end, and are in the log.

    Between two of them may be one whose answer died with its coordinator: it is in the log.
    """
    position = 0
    written = {commit.offset for commit in commits}
    for start, end in sorted(acknowledged):
        is_unanswered = answers_may_be_lost and start > position and start in written
        assert start == position or is_unanswered, f"[{start}, {end}) follows {position}"
        assert end in written, f"{end} was acknowledged and is not in the log"
        position = end
    assert not acknowledged or answers_may_be_lost or position == commits[-1].offset
