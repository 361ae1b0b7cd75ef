"""The indexes of a segment against its batches: where their entries say something else."""

from collections.abc import Iterator, Mapping
from struct import Struct
from typing import Final, NamedTuple

from analytics.audit.faults import Kind
from analytics.audit.sequence import BatchSequence, Finding

_OFFSET_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")
_TXN_ENTRY: Final = Struct(">hqqqq")
_TXN_VERSION: Final = 0


class Batches(NamedTuple):
    """What is known of a segment's batches."""

    base_offset: int
    sequence: BatchSequence
    damaged: set[int]
    aborts: Mapping[int, int]
    # Whether all of them are known: where some are damaged, an entry that leads nowhere may be
    # right, and the damage is told already.
    is_complete: bool
    was_compacted: bool


def offset_index_faults(data: bytes, batches: Batches) -> Iterator[Finding]:
    """Each entry leads to the start of the batch, or of the append, that its offset is in."""
    sound: list[tuple[int, int]] = []
    for at, (relative, position) in _entries(data, _OFFSET_ENTRY):
        offset = batches.base_offset + relative
        wrong = _wrong_position(position, offset, batches)
        if wrong is not None:
            yield Finding(Kind.OFFSET_INDEX, at, offset, wrong)
            continue
        if sound and relative <= sound[-1][1]:
            # Either is wrong: the one before, if this one follows well without it.
            is_before = len(sound) == 1 or relative > sound[-2][1]
            blamed_at, blamed = sound.pop() if is_before else (at, relative)
            what = "it is not between its neighbours"
            yield Finding(Kind.OFFSET_INDEX, blamed_at, batches.base_offset + blamed, what)
            if not is_before:
                continue
        sound.append((at, relative))
    yield from _left_over(data, _OFFSET_ENTRY, Kind.OFFSET_INDEX)


def time_index_faults(data: bytes, batches: Batches) -> Iterator[Finding]:
    """Each entry names an offset, and the latest timestamp of the batch that it is in."""
    last = (-1, -1)
    for at, (timestamp, relative) in _entries(data, _TIME_ENTRY):
        offset = batches.base_offset + relative
        wrong = _wrong_timestamp(timestamp, offset, batches)
        if wrong is None and (timestamp <= last[0] or relative < last[1]):
            wrong = "it is not above the entry before"
        if wrong is None:
            last = (timestamp, relative)
        else:
            yield Finding(Kind.TIME_INDEX, at, offset, wrong)
    yield from _left_over(data, _TIME_ENTRY, Kind.TIME_INDEX)


def txn_index_faults(data: bytes, batches: Batches) -> Iterator[Finding]:
    """Each entry ends with the abort marker of its producer."""
    for at, entry in _entries(data, _TXN_ENTRY):
        wrong = _wrong_transaction(entry, batches)
        if wrong is not None:
            yield Finding(Kind.TXN_INDEX, at, entry[3], wrong)
    yield from _left_over(data, _TXN_ENTRY, Kind.TXN_INDEX)


def _wrong_transaction(entry: tuple[int, ...], batches: Batches) -> str | None:
    version, producer_id, first_offset, last_offset, stable_offset = entry
    if version != _TXN_VERSION:
        return f"it has version {version}"
    if not 0 <= first_offset <= last_offset:
        return f"it begins with {first_offset} and ends with {last_offset}"
    if not 0 <= stable_offset <= last_offset + 1:
        return f"its last stable offset is {stable_offset}"
    is_known = batches.is_complete or batches.sequence.place_of(last_offset) is not None
    if is_known and batches.aborts.get(last_offset) != producer_id:
        return f"producer {producer_id} has no abort marker there"
    is_within = first_offset >= batches.base_offset and not batches.was_compacted
    if is_within and batches.is_complete and not batches.sequence.begins_with(first_offset):
        return f"no batch begins with {first_offset}"
    return None


def _wrong_timestamp(timestamp: int, offset: int, batches: Batches) -> str | None:
    place = batches.sequence.place_of(offset)
    if place is None:
        return "no batch has this offset" if batches.is_complete else None
    if place.max_timestamp != timestamp:
        return f"{timestamp} is not the batch's latest timestamp, {place.max_timestamp}"
    return None


def _wrong_position(position: int, offset: int, batches: Batches) -> str | None:
    place = batches.sequence.place_at(position)
    if place is None:
        if position in batches.damaged or not batches.is_complete:
            return None
        return f"no batch begins at position {position}"
    if offset < place.base_offset:
        return f"the batch at position {position} begins with {place.base_offset}"
    if batches.is_complete and batches.sequence.place_of(offset) is None:
        return "no batch has this offset"
    return None


def _entries(data: bytes, layout: Struct) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Entries and where they are; behind the last one there may be zeros, set aside for more."""
    used = -(-len(data.rstrip(b"\0")) // layout.size) * layout.size
    whole = min(used, len(data) - len(data) % layout.size)
    for slot, entry in enumerate(layout.iter_unpack(data[:whole])):
        yield slot * layout.size, entry


def _left_over(data: bytes, layout: Struct, kind: Kind) -> Iterator[Finding]:
    if extra := len(data) % layout.size:
        yield Finding(kind, len(data) - extra, None, f"{extra} bytes are no entry")
