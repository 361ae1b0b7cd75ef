"""The indexes of a segment against its batches: where their entries say something else."""

from collections.abc import Callable, Iterator
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from analytics.audit.faults import Kind
from analytics.audit.sequence import BatchSequence, Finding

if TYPE_CHECKING:
    from analytics.audit.transaction_index import Aborts

_OFFSET_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")


class Batches(NamedTuple):
    """What is known of a segment's batches."""

    base_offset: int
    sequence: BatchSequence
    damaged: set[int]
    aborts: "Aborts"
    # Whether all of them are known: where some are damaged, an entry that leads nowhere may be
    # right, and the damage is told already.
    is_complete: bool
    was_compacted: bool
    is_last: bool
    gaps_are_told: bool

    def may_miss(self, offset: int) -> bool:
        """Whether it is told already why no batch has an offset: it lies in a gap, perhaps because
        the batch behind that has another offset now."""
        places = self.sequence.places
        is_between = bool(places) and places[0].base_offset < offset < places[-1].last_offset
        return not self.is_complete or (is_between and self.gaps_are_told)


class PastEnd(NamedTuple):
    """Entries at an index's end that lead past the end of the log. That was cut off, or they are
    wrong: the other indexes and the next segment tell."""

    position: int
    first_offset: int
    last_offset: int


class IndexKind(NamedTuple):
    """A kind of index, what its faults are called, and the offset of an entry."""

    layout: Struct
    fault: Kind
    offset_of: Callable[[tuple[int, ...], int], int]
    check: Callable[[bytes, Batches], Iterator[Finding]]

    def past_end(self, data: bytes, batches: Batches) -> PastEnd | None:
        """Where batches are damaged, nobody knows where the log ends."""
        past: PastEnd | None = None
        if batches.is_complete:
            for at in reversed(range(0, _whole(data, self.layout), self.layout.size)):
                entry = self.layout.unpack_from(data, at)
                offset = self.offset_of(entry, batches.base_offset)
                if offset < batches.sequence.next_offset:
                    break
                past = PastEnd(at, offset, past.last_offset if past else offset)
        return past

    def has_room(self, data: bytes) -> bool:
        """Whether space is set aside in it for more entries."""
        return _used(data, self.layout) < len(data)


def offset_index_faults(data: bytes, batches: Batches) -> Iterator[Finding]:
    """Each entry leads to the start of the batch, or of the append, that its offset is in."""
    sound: list[tuple[int, tuple[int, ...]]] = []
    for at, entry in entries(data, _OFFSET_ENTRY):
        relative, position = entry
        offset = batches.base_offset + relative
        wrong = _wrong_position(position, offset, batches)
        if wrong is not None:
            yield Finding(Kind.OFFSET_INDEX, at, offset, wrong)
            continue
        if sound and not _is_above(entry, sound[-1][1]):
            # Either is wrong: the one before, if this one follows well without it.
            is_before = len(sound) == 1 or _is_above(entry, sound[-2][1])
            blamed_at, blamed = sound.pop() if is_before else (at, entry)
            what = "it is not between its neighbours"
            yield Finding(Kind.OFFSET_INDEX, blamed_at, batches.base_offset + blamed[0], what)
            if not is_before:
                continue
        sound.append((at, entry))
    yield from _zeros(data, _OFFSET_ENTRY, Kind.OFFSET_INDEX, batches)
    yield from left_over(data, _OFFSET_ENTRY, Kind.OFFSET_INDEX)


def _is_above(entry: tuple[int, ...], before: tuple[int, ...]) -> bool:
    return all(one > other for one, other in zip(entry, before, strict=True))


def time_index_faults(data: bytes, batches: Batches) -> Iterator[Finding]:
    """Each entry names an offset, and the latest timestamp of the batch that it is in."""
    found: list[Finding] = []
    last = (-1, -1)
    for at, (timestamp, relative) in entries(data, _TIME_ENTRY):
        offset = batches.base_offset + relative
        wrong = _wrong_timestamp(timestamp, offset, batches)
        if wrong is None and (timestamp <= last[0] or relative < last[1]):
            wrong = "it is not above the entry before"
        if wrong is None:
            last = (timestamp, relative)
        else:
            found.append(Finding(Kind.TIME_INDEX, at, offset, wrong))
    is_whole = not len(data) % _TIME_ENTRY.size and not found
    if is_whole and not batches.is_last and batches.is_complete:
        found = _wrong_end(_used(data, _TIME_ENTRY), last[0], batches)
    yield from found
    yield from left_over(data, _TIME_ENTRY, Kind.TIME_INDEX)


def _wrong_timestamp(timestamp: int, offset: int, batches: Batches) -> str | None:
    place = batches.sequence.place_of(offset)
    if place is None:
        return None if batches.may_miss(offset) else "no batch has this offset"
    if place.max_timestamp != timestamp:
        return f"{timestamp} is not the batch's latest timestamp, {place.max_timestamp}"
    return None


def _wrong_end(position: int, timestamp: int, batches: Batches) -> list[Finding]:
    """The index of a segment that is no longer written ends with its latest timestamp."""
    latest = max(batches.sequence.places, key=lambda place: place.max_timestamp, default=None)
    if latest is None or latest.max_timestamp <= timestamp:
        return []
    what = f"it ends before the latest timestamp, {latest.max_timestamp}"
    return [Finding(Kind.TIME_INDEX, position, latest.last_offset, what)]


def _zeros(data: bytes, layout: Struct, kind: Kind, batches: Batches) -> Iterator[Finding]:
    """Space that is set aside in an index is given back when its segment is finished."""
    used = _used(data, layout)
    if not batches.is_last and used < len(data) - len(data) % layout.size:
        yield Finding(kind, used, None, f"from here on it is zeros, {len(data) - used} bytes")


def _wrong_position(position: int, offset: int, batches: Batches) -> str | None:
    if position == 0:
        return "no entry is made for a segment's first batch"
    place = batches.sequence.place_at(position)
    if place is None:
        if position in batches.damaged or not batches.is_complete:
            return None
        return f"no batch begins at position {position}"
    if offset < place.base_offset:
        if batches.may_miss(offset):
            return None
        return f"the batch at position {position} begins with {place.base_offset}"
    its_batch = batches.sequence.place_of(offset)
    if not batches.is_complete or (its_batch is None and batches.may_miss(offset)):
        return None
    if its_batch is None:
        return "no batch has this offset"
    # Brokers name the last offset of an append; those of long ago named the first.
    if not batches.was_compacted and offset not in (its_batch.last_offset, place.base_offset):
        return f"the batch of its offset ends with {its_batch.last_offset}"
    return None


def in_runs(findings: list[Finding], layout: Struct) -> Iterator[Finding]:
    """Findings in an index as one for each run of entries: what overwrote several is one fault."""
    run: list[Finding] = []
    for one in [*sorted(findings, key=lambda one: one.position), None]:
        if run and (one is None or one.position > run[-1].position + layout.size):
            first, others = run[0], len({each.position for each in run}) - 1
            more = f", nor are the {others} behind it right" if others else ""
            yield first._replace(detail=first.detail + more)
            run = []
        if one is not None:
            run.append(one)


def entries(data: bytes, layout: Struct) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Entries and where they are; behind the last one there may be zeros, set aside for more."""
    for slot, entry in enumerate(layout.iter_unpack(data[: _whole(data, layout)])):
        yield slot * layout.size, entry


def _whole(data: bytes, layout: Struct) -> int:
    return min(_used(data, layout), len(data) - len(data) % layout.size)


def _used(data: bytes, layout: Struct) -> int:
    return -(-len(data.rstrip(b"\0")) // layout.size) * layout.size


def left_over(data: bytes, layout: Struct, kind: Kind) -> Iterator[Finding]:
    if extra := len(data) % layout.size:
        yield Finding(kind, len(data) - extra, None, f"{extra} bytes are no entry")


OFFSET_INDEX: Final = IndexKind(
    _OFFSET_ENTRY,
    Kind.OFFSET_INDEX,
    lambda entry, base_offset: base_offset + entry[0],
    offset_index_faults,
)
TIME_INDEX: Final = IndexKind(
    _TIME_ENTRY,
    Kind.TIME_INDEX,
    lambda entry, base_offset: base_offset + entry[1],
    time_index_faults,
)
