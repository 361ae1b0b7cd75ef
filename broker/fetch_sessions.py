"""Fetch sessions (KIP-227): what a client fetches is remembered, and only changes are told.

A client opens a session with a full fetch (epoch 0) and names its partitions once; its next
fetches (epochs 1, 2, ...) name only those that it adds, changes or forgets, and are answered only
for partitions that have something new. Epoch -1 wants no session.

    request (id, epoch)     context
    any, -1                 full, and no session afterwards; the one named is closed
    any, 0                  full, and a new session if there is room; the one named is closed
    known, its next one     incremental
    known, another          INVALID_FETCH_SESSION_EPOCH
    unknown, any            FETCH_SESSION_ID_NOT_FOUND

Rooms are scarce (`max.incremental.fetch.session.cache.slots`): see `FetchSessions._make_room`.
This module knows what is fetched, not how it is read or put on the wire.
"""

import bisect
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from broker.failures import ApiError
from broker.replica_manager import FetchSpec, PartitionKey, PartitionRead
from network.protocol import ErrorCode

NO_SESSION = 0
FULL_EPOCH = 0
SESSIONLESS_EPOCH = -1
LARGEST_INT32 = 0x7FFFFFFF
UNKNOWN_OFFSET = -1
EVICTION_SECONDS = 120.0

EvictionRank = tuple[bool, int, int]


def next_epoch(epoch: int) -> int:
    """Epochs of a session never come back to 0, which means a full fetch."""
    return 1 if epoch == LARGEST_INT32 else epoch + 1


@dataclass(slots=True)
class CachedPartition(FetchSpec):
    """A partition of a session: what the client wants of it, and what it was last told."""

    high_watermark: int = UNKNOWN_OFFSET
    told_log_start_offset: int = UNKNOWN_OFFSET

    @classmethod
    def wanted(cls, spec: FetchSpec) -> "CachedPartition":
        return cls(
            spec.topic,
            spec.partition,
            spec.offset,
            spec.max_bytes,
            spec.current_leader_epoch,
            spec.log_start_offset,
        )

    def change(self, spec: FetchSpec) -> None:
        self.offset = spec.offset
        self.max_bytes = spec.max_bytes
        self.current_leader_epoch = spec.current_leader_epoch
        self.log_start_offset = spec.log_start_offset

    def tell(self, read: PartitionRead) -> bool:
        """Whether there is anything new in this read; the client will know it from now on."""
        data = read.data
        if data is None:
            # Whatever comes after an error is news.
            self.high_watermark = self.told_log_start_offset = UNKNOWN_OFFSET
            return True
        known = (self.high_watermark, self.told_log_start_offset)
        self.high_watermark = data.high_watermark
        self.told_log_start_offset = data.start_offset
        return len(data.slice) > 0 or known != (data.high_watermark, data.start_offset)


class FetchSession:
    """One client's fetch, remembered."""

    __slots__ = ("created", "epoch", "id", "last_used", "partitions", "privileged", "rank")

    def __init__(
        self,
        session_id: int,
        partitions: dict[PartitionKey, CachedPartition],
        now: float,
        *,
        privileged: bool,
    ) -> None:
        self.id = session_id
        self.partitions = partitions
        self.created = now
        self.last_used = now
        self.privileged = privileged
        self.epoch = next_epoch(FULL_EPOCH)
        self.rank: EvictionRank = (privileged, len(partitions), session_id)

    def update(self, specs: Iterable[FetchSpec], forgotten: Iterable[PartitionKey]) -> None:
        for spec in specs:
            cached = self.partitions.get((spec.topic, spec.partition))
            if cached is None:
                self.partitions[spec.topic, spec.partition] = CachedPartition.wanted(spec)
            else:
                cached.change(spec)
        for key in forgotten:
            self.partitions.pop(key, None)

    def news(self, reads: Sequence[PartitionRead]) -> list[PartitionRead]:
        """The reads worth telling; their partitions go to the end of the line, so that others
        come first when a fetch is too small for all."""
        told = []
        for read in reads:
            key = (read.spec.topic, read.spec.partition)
            cached = self.partitions[key]
            if cached.tell(read):
                del self.partitions[key]
                self.partitions[key] = cached
                told.append(read)
        return told


@dataclass(slots=True)
class FetchAnswer:
    """What goes into the response."""

    reads: Sequence[PartitionRead]
    session_id: int = NO_SESSION
    error: ErrorCode = ErrorCode.NONE


class FetchContext(ABC):
    """What one fetch request means: which partitions, and what of them must be told."""

    __slots__ = ("specs",)

    def __init__(self, specs: Sequence[FetchSpec]) -> None:
        self.specs = specs

    @abstractmethod
    def answer(self, reads: Sequence[PartitionRead]) -> FetchAnswer:
        """Call once, when the wait is over."""


class SessionlessFetch(FetchContext):
    """Everything that was asked for is told, and nothing remembered."""

    __slots__ = ()

    def answer(self, reads: Sequence[PartitionRead]) -> FetchAnswer:
        return FetchAnswer(reads)


class FullFetch(FetchContext):
    """Everything is told, and a session opened if there is room."""

    __slots__ = ("_privileged", "_sessions")

    def __init__(
        self, specs: Sequence[FetchSpec], sessions: "FetchSessions", *, privileged: bool
    ) -> None:
        super().__init__(specs)
        self._sessions = sessions
        self._privileged = privileged

    def answer(self, reads: Sequence[PartitionRead]) -> FetchAnswer:
        session_id = self._sessions.create(reads, privileged=self._privileged)
        return FetchAnswer(reads, session_id)


class IncrementalFetch(FetchContext):
    """Only what has changed is told."""

    __slots__ = ("_epoch", "_session")

    def __init__(self, session: FetchSession) -> None:
        super().__init__(list(session.partitions.values()))
        self._session = session
        self._epoch = session.epoch

    def answer(self, reads: Sequence[PartitionRead]) -> FetchAnswer:
        session = self._session
        if session.epoch != self._epoch:
            # The client did not wait for this answer and went on with the session.
            return FetchAnswer((), session.id, ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        return FetchAnswer(session.news(reads), session.id)


class FetchSessions:
    """The sessions of this broker's clients."""

    def __init__(self, slots: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.evictions = 0
        self.cached_partitions = 0
        self._slots = slots
        self._clock = clock
        # By id; the one that was used longest ago comes first.
        self._sessions: dict[int, FetchSession] = {}
        # By privilege and size, the least valuable first.
        self._evictable_by_all: list[EvictionRank] = []
        self._evictable_by_privileged: list[EvictionRank] = []

    def __len__(self) -> int:
        return len(self._sessions)

    def __contains__(self, session_id: int) -> bool:
        return session_id in self._sessions

    def context(
        self,
        session_id: int,
        epoch: int,
        specs: Sequence[FetchSpec],
        forgotten: Iterable[PartitionKey] = (),
        *,
        privileged: bool = False,
    ) -> FetchContext:
        """What a request means; raises ApiError if its session is not there, or elsewhere."""
        if epoch in (FULL_EPOCH, SESSIONLESS_EPOCH):
            if session_id != NO_SESSION:
                self._remove(session_id)
            if epoch == SESSIONLESS_EPOCH:
                return SessionlessFetch(specs)
            return FullFetch(specs, self, privileged=privileged)
        session = self._sessions.get(session_id)
        if session is None:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise ApiError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        session.update(specs, forgotten)
        if not session.partitions:
            self._remove(session_id)
            return SessionlessFetch(specs)
        self._touch(session)
        session.epoch = next_epoch(epoch)
        return IncrementalFetch(session)

    def create(self, reads: Sequence[PartitionRead], *, privileged: bool) -> int:
        """Remember what has just been told; NO_SESSION if there is no room for it."""
        now = self._clock()
        if len(self._sessions) >= self._slots and not self._make_room(
            (privileged, len(reads), NO_SESSION), now
        ):
            return NO_SESSION
        partitions = {}
        for read in reads:
            cached = CachedPartition.wanted(read.spec)
            cached.tell(read)
            partitions[cached.topic, cached.partition] = cached
        session = FetchSession(self._new_id(), partitions, now, privileged=privileged)
        self._sessions[session.id] = session
        self.cached_partitions += len(partitions)
        if not privileged:
            bisect.insort(self._evictable_by_privileged, session.rank)
        return session.id

    def _make_room(self, rank: EvictionRank, now: float) -> bool:
        """A new session takes the place of one that is stale; failing that, of the least valuable
        one: followers' sessions outrank clients', larger ones smaller ones. A session is safe from
        its likes while it is young, and followers' young ones are safe from all."""
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now - oldest.last_used > EVICTION_SECONDS:
            self._evict(oldest.id)
            return True
        evictable = self._evictable_by_privileged if rank[0] else self._evictable_by_all
        if not evictable or rank < evictable[0]:
            return False
        self._evict(evictable[0][2])
        return True

    def _evict(self, session_id: int) -> None:
        self._remove(session_id)
        self.evictions += 1

    def _remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._withdraw(session)

    def _touch(self, session: FetchSession) -> None:
        """It was used just now, and may have grown older or larger."""
        now = self._clock()
        del self._sessions[session.id]
        self._sessions[session.id] = session
        self._withdraw(session)
        session.last_used = now
        session.rank = (session.privileged, len(session.partitions), session.id)
        self.cached_partitions += len(session.partitions)
        is_young = now - session.created <= EVICTION_SECONDS
        if not (is_young and session.privileged):
            bisect.insort(self._evictable_by_privileged, session.rank)
        if not is_young:
            bisect.insort(self._evictable_by_all, session.rank)

    def _withdraw(self, session: FetchSession) -> None:
        self.cached_partitions -= session.rank[1]
        for ranks in (self._evictable_by_privileged, self._evictable_by_all):
            place = bisect.bisect_left(ranks, session.rank)
            if place < len(ranks) and ranks[place] == session.rank:
                del ranks[place]

    def _new_id(self) -> int:
        while True:
            session_id = random.randrange(1, LARGEST_INT32)
            if session_id not in self._sessions:
                return session_id
