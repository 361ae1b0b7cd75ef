"""The part of a segment that one task reads, and how it is opened again where it is read.

Owns what travels from the planning to the tasks. Between the two a broker may delete a segment,
or put a compacted one in its place; the offsets of a piece say what it stands for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from analytics.errors import AnalysisError
from analytics.logs import places
from analytics.logs.partitions import Segment, read_partition
from analytics.logs.places import PlacedFile
from storage.txn_index import AbortedTransaction

NO_LIMIT: Final = (1 << 63) - 1
NO_FLOOR: Final = -(1 << 63)


@dataclass(frozen=True, slots=True)
class Piece:
    """The batches of a segment between two positions, and of them the records between two
    offsets (the second excluded)."""

    segment: Segment
    start: int
    end: int
    first_offset: int = NO_FLOOR
    end_offset: int = NO_LIMIT
    aborted: tuple[AbortedTransaction, ...] = ()

    @property
    def size(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class OpenPiece:
    piece: Piece
    file: PlacedFile


def open_piece(piece: Piece, fail_on_data_loss: bool) -> Iterator[OpenPiece]:
    """The file of a piece, or the files that hold its offsets now."""
    try:
        file = places.open_file(piece.segment.path)
    except FileNotFoundError:
        file = None
    if file is not None and _is_same(piece.segment, file):
        yield OpenPiece(piece, file)
        return
    del file
    yield from _replacements(piece, fail_on_data_loss)


def _is_same(segment: Segment, file: PlacedFile) -> bool:
    """A segment that is written only grows; any other keeps its size, and its inode."""
    if segment.identity != file.identity:
        return False
    return file.size >= segment.size if segment.is_last else file.size == segment.size


def _replacements(piece: Piece, fail_on_data_loss: bool) -> Iterator[OpenPiece]:
    log = read_partition(places.split(piece.segment.path)[0])
    first = max(piece.first_offset, piece.segment.base_offset)
    if log is None or log.segments[0].base_offset > first:
        if fail_on_data_loss:
            raise AnalysisError(
                f"{piece.segment.path}: was deleted while it was read;"
                ' option("failOnDataLoss", "false") goes on without it'
            )
        if log is None:
            return
    bounded = replace(piece, first_offset=first)
    for index, segment in enumerate(log.segments):
        is_before = index + 1 < len(log.segments) and log.segments[index + 1].base_offset <= first
        if is_before or segment.base_offset >= piece.end_offset:
            continue
        yield from _opened(replace(bounded, segment=segment, start=0, end=segment.size))


def _opened(piece: Piece) -> Iterator[OpenPiece]:
    try:
        yield OpenPiece(piece, places.open_file(piece.segment.path))
    except FileNotFoundError:  # replaced once more: whatever it held is in another file
        yield from _replacements(piece, fail_on_data_loss=True)
