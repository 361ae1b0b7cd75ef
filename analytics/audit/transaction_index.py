"""The `.txnindex` of a segment against its batches: readers of committed data believe it.

Owns what a segment's own batches tell of the transactions that were aborted in it. One that began
in a segment before is known by its marker alone.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from analytics.audit.faults import Kind
from analytics.audit.indexes import Batches, IndexKind, entries, left_over
from analytics.audit.sequence import Finding

_ENTRY: Final = Struct(">hqqqq")
_VERSION: Final = 0


class Abort(NamedTuple):
    """A transaction that an abort marker ended. `first_offset` is None where nothing of it is in
    this segment; it is exact where its producer had ended another one here before."""

    producer_id: int
    first_offset: int | None
    is_exact: bool


class Aborts:
    """Collects aborted transactions by the offsets of their markers, in the order of the file."""

    def __init__(self) -> None:
        self.by_marker: dict[int, Abort] = {}
        self._open: dict[int, int] = {}
        self._ended: set[int] = set()

    def take_write(self, producer_id: int, offset: int) -> None:
        self._open.setdefault(producer_id, offset)

    def take_marker(self, producer_id: int, offset: int, is_abort: bool) -> None:
        first_offset = self._open.pop(producer_id, None)
        if is_abort:
            is_exact = producer_id in self._ended
            self.by_marker[offset] = Abort(producer_id, first_offset, is_exact)
        self._ended.add(producer_id)


def txn_index_faults(data: bytes, batches: Batches) -> Iterator[Finding]:
    """Each entry begins with a batch of its transaction and ends with its abort marker."""
    last_marker = -1
    for at, entry in entries(data, _ENTRY):
        _, _, _, marker, _ = entry
        wrong = _wrong_entry(entry, batches)
        if wrong is None and marker <= last_marker:
            wrong = "it is not above the entry before"
        if wrong is None:
            last_marker = marker
        else:
            yield Finding(Kind.TXN_INDEX, at, marker, wrong)
    yield from left_over(data, _ENTRY, Kind.TXN_INDEX)


def missing_aborts(data: bytes, batches: Batches) -> Iterator[Finding]:
    """Aborted transactions that the index does not have: their records would pass for committed
    ones. The cleaner drops records and markers as it likes."""
    if not batches.is_complete or batches.was_compacted:
        return
    listed = {entry[3] for _, entry in entries(data, _ENTRY)}
    missing = [
        marker
        for marker, abort in batches.aborts.by_marker.items()
        if abort.first_offset is not None and marker not in listed
    ]
    if missing:
        several = ", ".join(map(str, missing))
        what = f"it lacks the transactions that were aborted at {several}"
        yield Finding(Kind.TXN_INDEX, len(listed) * _ENTRY.size, missing[0], what)


def _wrong_entry(entry: tuple[int, ...], batches: Batches) -> str | None:
    version, producer_id, first_offset, marker, stable_offset = entry
    if version != _VERSION:
        return f"it has version {version}"
    if not 0 <= first_offset <= marker:
        return f"it begins with {first_offset} and ends with {marker}"
    if not 0 <= stable_offset <= marker + 1:
        return f"its last stable offset is {stable_offset}"
    abort = batches.aborts.by_marker.get(marker)
    is_known = batches.is_complete or batches.sequence.place_of(marker) is not None
    if is_known and (abort is None or abort.producer_id != producer_id):
        return f"producer {producer_id} has no abort marker there"
    if abort is not None and batches.is_complete and not batches.was_compacted:
        return _wrong_start(first_offset, abort, batches.base_offset)
    return None


def _wrong_start(first_offset: int, abort: Abort, base_offset: int) -> str | None:
    is_right = first_offset < base_offset and not abort.is_exact
    if not is_right and first_offset != abort.first_offset:
        return f"no batch of its transaction begins with {first_offset}"
    return None


TRANSACTION_INDEX: Final = IndexKind(
    _ENTRY, Kind.TXN_INDEX, lambda entry, _: entry[3], txn_index_faults
)
