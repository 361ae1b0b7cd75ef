"""The record table: the records of segments as Arrow batches, in the columns of Spark's Kafka
source.

Owns which batches are opened and which records leave. Knows files and batches, not Spark.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from analytics.decoding.block import ARROW_TYPES, Capacities, RecordBlock
from analytics.decoding.header_kernel import NO_POSITION, Header
from analytics.decoding.record_kernel import (
    Outcome,
    Progress,
    Region,
    Wanted,
    append_records,
)
from analytics.decoding.sections import Scratch, intact_batches, plain_regions
from analytics.decoding.windows import BatchWindows, Window
from analytics.pieces import NO_FLOOR, NO_LIMIT, Piece, open_piece
from analytics.problems import Kind, Report, problem_in, report_end
from analytics.transactions import AbortedBatches
from storage.records.errors import RecordDataError
from storage.records.layout import CODEC_MASK, CONTROL_FLAG, MAGIC_2

ROWS_PER_BATCH: Final = 16 * 1024
BYTES_PER_BATCH: Final = 2 * 1024 * 1024

_COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")


@dataclass(frozen=True, slots=True)
class RecordQuery:
    """What a reader wants of the records in its pieces. Timestamps are in milliseconds, both
    ends included."""

    columns: tuple[str, ...] = _COLUMNS
    first_timestamp: int = NO_FLOOR
    last_timestamp: int = NO_LIMIT
    fail_on_data_loss: bool = True
    checks_all: bool = False  # the checksums of batches, too, that hold nothing of this
    rows_per_batch: int = ROWS_PER_BATCH
    bytes_per_batch: int = BYTES_PER_BATCH

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, ARROW_TYPES[name]) for name in self.columns])


def read_records(
    pieces: Iterable[Piece], query: RecordQuery, report: Report
) -> Iterator[pa.RecordBatch]:
    """The records of some pieces, in their order."""
    reader = _Reader(query, report)
    for piece in pieces:
        for opened in open_piece(piece, query.fail_on_data_loss):
            yield from reader.read(opened.piece, opened.file)


class _Reader:
    """Fills one block after the other. A block holds records of one partition."""

    def __init__(self, query: RecordQuery, report: Report) -> None:
        self._query = query
        self._report = report
        self._schema = query.schema
        self._capacities = self._caps()
        self._scratch = Scratch()
        self._block = self._new_block()

    def _caps(self) -> Capacities:
        return Capacities(self._query.rows_per_batch, self._query.bytes_per_batch)

    def _new_block(self) -> RecordBlock:
        return RecordBlock(self._capacities, self._query.columns)

    def read(self, piece: Piece, file: Any) -> Iterator[pa.RecordBatch]:
        wanted = self._wanted(piece)
        aborted = AbortedBatches(piece.aborted)
        windows = BatchWindows(file, piece.start, piece.end)
        for window in windows:
            if self._query.checks_all:
                headers = self._chosen(self._intact(window.headers, window, piece), piece, aborted)
            else:
                headers = self._chosen(window.headers, piece, aborted)
                headers = self._intact(headers, window, piece)
            for data, regions in self._opened(headers, window, piece):
                yield from self._append(data, regions, wanted, piece)
        if not windows.is_complete:
            report_end(windows, piece, self._report)
        if self._block.rows:
            yield self._take(piece)

    def _wanted(self, piece: Piece) -> Any:
        wanted = np.empty(len(Wanted), np.int64)
        wanted[Wanted.FIRST_OFFSET] = piece.first_offset
        wanted[Wanted.LAST_OFFSET] = piece.end_offset - 1
        wanted[Wanted.FIRST_TIMESTAMP] = self._query.first_timestamp
        wanted[Wanted.LAST_TIMESTAMP] = self._query.last_timestamp
        wanted[Wanted.KEY] = "key" in self._query.columns
        wanted[Wanted.VALUE] = "value" in self._query.columns
        wanted[Wanted.HEADERS] = "headers" in self._query.columns
        return wanted

    def _chosen(self, headers: Any, piece: Piece, aborted: AbortedBatches) -> Any:
        """The headers of the batches that may hold a wanted record."""
        is_chosen = headers[:, Header.ATTRIBUTES] & CONTROL_FLAG == 0
        is_chosen |= headers[:, Header.MAGIC] != MAGIC_2
        is_chosen &= headers[:, Header.RECORD_COUNT] != 0
        is_chosen &= headers[:, Header.LAST_OFFSET] >= piece.first_offset
        # The header of an old compressed message does not tell its first offset.
        is_chosen &= (headers[:, Header.BASE_OFFSET] < piece.end_offset) | (
            headers[:, Header.MAGIC] != MAGIC_2
        )
        is_chosen &= headers[:, Header.MAX_TIMESTAMP] >= self._query.first_timestamp
        if aborted:
            is_chosen &= ~aborted.among(headers)
        return headers if is_chosen.all() else headers[is_chosen]

    def _intact(self, headers: Any, window: Window, piece: Piece) -> Any:
        good = intact_batches(headers, window)
        if good.all():
            return headers
        for header in headers[~good]:
            self._report_batch(header, piece, Kind.WRONG_CRC, "the checksum does not match")
        return headers[good]

    def _opened(self, headers: Any, window: Window, piece: Piece) -> Iterator[tuple[Any, Any]]:
        """Buffers and the regions in them: batches that lie open in the window, and compressed
        ones decompressed, as many as go together in the order of the log."""
        is_plain = headers[:, Header.ATTRIBUTES] & CODEC_MASK == 0
        row = 0
        while row < len(headers):
            end = row + _run(is_plain[row:])
            if is_plain[row]:
                yield window.data, plain_regions(headers[row:end], window.file_position)
            else:
                yield from self._decompressed(headers[row:end], window, piece)
            row = end

    def _decompressed(
        self, headers: Any, window: Window, piece: Piece
    ) -> Iterator[tuple[Any, Any]]:
        bytes_of = memoryview(window.data)
        regions: list[Any] = []
        for header in headers:
            start = int(header[Header.POSITION]) - window.file_position
            try:
                batch = bytes_of[start : start + int(header[Header.SIZE])]
                regions.append(self._scratch.open(header, batch))
            except RecordDataError as error:
                self._report_batch(header, piece, Kind.UNREADABLE, str(error))
            if self._scratch.is_full:
                yield self._scratch.data, np.concatenate(regions)
                regions.clear()
                self._scratch.clear()
        if regions:
            yield self._scratch.data, np.concatenate(regions)
        self._scratch.clear()

    def _append(
        self, data: Any, regions: Any, wanted: Any, piece: Piece
    ) -> Iterator[pa.RecordBatch]:
        self._go_to_region(0)
        while True:
            block = self._block
            outcome = append_records(data, regions, wanted, block.progress, block.block)
            if outcome == Outcome.DONE:
                return
            if outcome == Outcome.DAMAGED:
                region = int(block.progress[Progress.REGION])
                self._report_region(regions[region], piece)
                self._go_to_region(region + 1)
            elif block.rows:
                yield self._take(piece)
            else:
                self._capacities.doubled()
                self._replace_block()

    def _go_to_region(self, region: int) -> None:
        progress = self._block.progress
        progress[Progress.REGION] = region
        progress[Progress.POSITION] = NO_POSITION
        progress[Progress.RECORD] = 0

    def _replace_block(self) -> None:
        """A new block that goes on where the old one stands."""
        before = self._block.progress
        self._block = self._new_block()
        for field in (Progress.REGION, Progress.POSITION, Progress.RECORD, Progress.OFFSET_SHIFT):
            self._block.progress[field] = before[field]

    def _take(self, piece: Piece) -> pa.RecordBatch:
        block = self._block
        segment = piece.segment
        columns = [
            _constant_text(segment.topic, self._query.rows_per_batch).slice(0, block.rows)
            if name == "topic"
            else _constant_int(segment.partition, self._query.rows_per_batch).slice(0, block.rows)
            if name == "partition"
            else block.column(name)
            for name in self._query.columns
        ]
        self._capacities = self._caps()  # what was made larger was so for one record
        self._replace_block()
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _report_batch(self, header: Any, piece: Piece, kind: Kind, detail: str) -> None:
        place = int(header[Header.POSITION]), int(header[Header.SIZE])
        self._report(problem_in(piece, kind, int(header[Header.BASE_OFFSET]), *place, detail))

    def _report_region(self, region: Any, piece: Piece) -> None:
        place = int(region[Region.FILE_POSITION]), int(region[Region.FILE_BYTES])
        base_offset = int(region[Region.BASE_OFFSET])
        detail = "the batch does not hold the records that it declares"
        self._report(problem_in(piece, Kind.UNREADABLE, base_offset, *place, detail))


def _run(flags: Any) -> int:
    """How many flags at the start are equal to the first."""
    changes = np.flatnonzero(flags != flags[0])
    return int(changes[0]) if len(changes) else len(flags)


@lru_cache(maxsize=8)
def _constant_text(text: str, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), rows)


@lru_cache(maxsize=8)
def _constant_int(number: int, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(number, pa.int32()), rows)
