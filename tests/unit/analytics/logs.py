"""Logs for tests, written by the log engine itself: indexes and several segments, still open."""

from pathlib import Path

from storage.append_info import AppendOrigin
from storage.log import Log
from storage.log_config import LogConfig
from storage.records.builder import BatchBuilder, ProducerInfo
from storage.records.control import ControlType, EndTxnMarker, encode_end_txn_marker
from storage.records.layout import Codec
from tests.unit.analytics.segments import START_MS
from tests.unit.storage.support import ManualClock, open_log

RECORDS_PER_BATCH = 10
SMALL_SEGMENTS = LogConfig(segment_bytes=20_000, index_interval_bytes=500, segment_index_bytes=4000)


def write_log(
    directory: Path,
    records: int,
    config: LogConfig = SMALL_SEGMENTS,
    codec: Codec = Codec.NONE,
) -> Log:
    """The log topic-0 in a directory, whose record at offset n has the timestamp START_MS + n.

    It is not closed, so that its last indexes are as those of a running broker."""
    log = open_log(directory, config, clock=ManualClock(START_MS))
    append(log, records, codec)
    return log


def append(log: Log, records: int, codec: Codec = Codec.NONE) -> None:
    end = log.end_offset + records
    while log.end_offset < end:
        builder = BatchBuilder(base_offset=0, codec=codec)
        for offset in range(log.end_offset, min(log.end_offset + RECORDS_PER_BATCH, end)):
            builder.append(START_MS + offset, b"key%d" % (offset % 7), b"%050d" % offset)
        log.append_as_leader(builder.build(), 0)


class Transactions:
    """Producers that write to a log in transactions."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._sequences: dict[int, int] = {}

    def write(self, producer: int, count: int) -> list[int]:
        first = self.log.end_offset
        sequence = self._sequences.get(producer, 0)
        info = ProducerInfo(producer, 0, sequence, is_transactional=True)
        builder = BatchBuilder(base_offset=0, producer=info)
        for number in range(count):
            builder.append(START_MS + number, b"k", bytes(100))
        self._sequences[producer] = sequence + count
        self.log.append_as_leader(builder.build(), 0)
        return list(range(first, first + count))

    def end(self, producer: int, control_type: ControlType) -> None:
        info = ProducerInfo(producer, 0, -1, is_transactional=True)
        builder = BatchBuilder(base_offset=0, producer=info, is_control=True)
        builder.append(START_MS, *encode_end_txn_marker(EndTxnMarker(control_type, 0)))
        self.log.append_as_leader(builder.build(), 0, AppendOrigin.COORDINATOR)
