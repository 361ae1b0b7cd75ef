"""Payloads for a leader, and their validation, for all tests of it."""

from storage.append_info import AppendOrigin
from storage.checksums import crc32c
from storage.records import (
    Codec,
)
from storage.records.control import ControlType, EndTxnMarker
from storage.records.layout import (
    ATTRIBUTES_POSITION,
    CRC_FIELD,
    CRC_POSITION,
    Buffer,
)
from storage.validation import (
    RecordRules,
    ValidatedRecords,
    validate_for_leader,
)
from tests.unit.storage.records.samples import (
    all_records,
    batch_of,
    numbered,
)

NOW = 1_700_000_000_000
DEFAULT_RULES = RecordRules()
MARKER = EndTxnMarker(ControlType.COMMIT, 3)


def lead(
    payload: Buffer,
    rules: RecordRules = DEFAULT_RULES,
    origin: AppendOrigin = AppendOrigin.CLIENT,
    first_offset: int = 100,
) -> ValidatedRecords:
    return validate_for_leader(bytearray(payload), rules, first_offset, 7, NOW, origin)


def three(codec: Codec = Codec.NONE) -> bytearray:
    return batch_of(numbered([b"a", b"b", b"c"]), codec)


def resealed(batch: bytearray) -> bytearray:
    CRC_FIELD.pack_into(batch, CRC_POSITION, crc32c(memoryview(batch)[ATTRIBUTES_POSITION:]))
    return batch


def offsets(data: Buffer) -> list[int]:
    return [record.offset for record in all_records(data)]
