"""The part of a segment that one task reads, and how it is opened again where it is read.

Owns what travels from the planning to the tasks. Between the two a broker may delete a segment,
or put a compacted one in its place; the offsets of a piece say what it stands for.
"""

from collections.abc import Iterator, Sequence
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
    file = _opened_if_same(piece.segment)
    if file is not None:
        yield OpenPiece(piece, file)
        return
    yield from _replacements(piece, fail_on_data_loss)


def _opened_if_same(segment: Segment) -> PlacedFile | None:
    """The file of a segment, unless it is gone or another one has its name. A segment that is
    written only grows; any other keeps its size, and its inode."""
    try:
        file = places.open_file(segment.path)
    except FileNotFoundError:
        return None
    if segment.identity != file.identity:
        return None
    is_same = file.size >= segment.size if segment.is_last else file.size == segment.size
    return file if is_same else None


def _replacements(piece: Piece, fail_on_data_loss: bool) -> Iterator[OpenPiece]:
    """The segments that hold a piece's offsets now. Where one of them is replaced in its turn,
    they are looked for once more, from there on."""
    first = max(piece.first_offset, piece.segment.base_offset)
    while first < piece.end_offset:
        log = read_partition(places.split(piece.segment.path)[0])
        if log is None or log.segments[0].base_offset > first:
            if fail_on_data_loss:
                raise AnalysisError(
                    f"{piece.segment.path}: was deleted while it was read;"
                    ' option("failOnDataLoss", "false") goes on without it'
                )
            if log is None:
                return
        for opened, next_base in _opened(replace(piece, first_offset=first), log.segments):
            if opened is None:
                break
            yield opened
            first = max(first, next_base)
        else:
            return


def _opened(piece: Piece, segments: Sequence[Segment]) -> Iterator[tuple[OpenPiece | None, int]]:
    """The files of these segments that hold a piece's offsets, and where the next one begins. None
    for one that is gone: replaced once more, or deleted."""
    next_bases = [*(segment.base_offset for segment in segments[1:]), NO_LIMIT]
    for segment, next_base in zip(segments, next_bases, strict=True):
        if next_base <= piece.first_offset or segment.base_offset >= piece.end_offset:
            continue
        end_offset = min(piece.end_offset, next_base)
        part = replace(piece, segment=segment, start=0, end=segment.size, end_offset=end_offset)
        file = _opened_if_same(segment)
        yield None if file is None else OpenPiece(part, file), next_base
