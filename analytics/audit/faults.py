"""What can be wrong, and how it is told: one row per fault, with the place to look at."""

from enum import StrEnum
from typing import Final, NamedTuple

from storage.segment_files import readable


class Kind(StrEnum):
    """The kinds of faults; the text is what the table holds."""

    CRC = "wrong checksum"
    UNREADABLE = "no batch"
    TORN_TAIL = "torn tail"
    OFFSET_ORDER = "offsets not in order"
    OFFSET_GAP = "offsets missing"
    LOST = "records lost"
    LEADER_EPOCH = "leader epoch goes back"
    EPOCH_FILE = "leader epochs disagree"
    OFFSET_INDEX = "offset index disagrees"
    TIME_INDEX = "time index disagrees"
    TXN_INDEX = "transaction index disagrees"
    MISSING_FILE = "file missing"
    DAMAGED_FILE = "file damaged"
    FOREIGN_FILE = "foreign file"


class Fault(NamedTuple):
    """One thing that is wrong. Position and offset are those of the batch or index entry."""

    log_dir: str
    topic: str | None
    partition: int | None
    file: str
    position: int | None
    offset: int | None
    kind: str
    detail: str


SPARK_SCHEMA: Final = (
    "log_dir string, topic string, partition int, file string, position bigint,"
    " offset bigint, kind string, detail string"
)


def shown(fault: Fault) -> Fault:
    """The fault in words that a table can hold, whatever files are named."""
    log_dir, file, detail = map(readable, (fault.log_dir, fault.file, fault.detail))
    return fault._replace(log_dir=log_dir, file=file, detail=detail)
