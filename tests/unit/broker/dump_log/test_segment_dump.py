"""Segments, whole and damaged: every batch that can be found is shown, damage is told of."""

from pathlib import Path

import pytest

from storage.checksums import crc32c
from storage.records import BatchBuilder, Codec
from storage.records.control import CONTROL_KEY
from storage.records.layout import (
    ATTRIBUTES_POSITION,
    CONTROL_FLAG,
    CRC_FIELD,
    CRC_POSITION,
    LENGTH_POSITION,
    MAGIC_POSITION,
)
from storage.records.legacy import encode_message
from tests.unit.broker.dump_log.support import SEGMENT, dump, write
from tests.unit.storage.support import NOW, make_batch

FIRST = make_batch(b"one", b"two")
SECOND = make_batch(b"three", base_offset=2)


def reseal(batch: bytearray) -> bytearray:
    """Give a changed batch the checksum that it should have."""
    crc = crc32c(memoryview(batch)[ATTRIBUTES_POSITION:])
    CRC_FIELD.pack_into(batch, CRC_POSITION, crc)
    return batch


def test_batches_are_shown_without_their_records(tmp_path: Path) -> None:
    path = write(tmp_path / SEGMENT, FIRST, SECOND)
    shown = dump(path)
    assert shown.lines[:2] == [f"Dumping {path}", "Starting offset: 0"]
    assert shown.lines[3:] == [
        "baseOffset: 2 lastOffset: 2 count: 1 baseSequence: -1 lastSequence: -1 producerId: -1"
        " producerEpoch: -1 partitionLeaderEpoch: -1 isTransactional: false isControl: false"
        f" position: {len(FIRST)} CreateTime: {NOW} size: {len(SECOND)} magic: 2"
        f" compresscodec: NONE crc: {CRC_FIELD.unpack_from(SECOND, CRC_POSITION)[0]} isvalid: true"
    ]
    assert (shown.status, shown.complaints) == (0, [])


def test_records_are_shown_without_their_content(tmp_path: Path) -> None:
    path = write(tmp_path / SEGMENT, SECOND)
    assert dump("--deep-iteration", path).lines[-1] == (
        f"| offset: 2 CreateTime: {NOW} keysize: 3 valuesize: 5 sequence: -1 headerKeys: []"
    )


def test_records_are_shown_with_their_content(tmp_path: Path) -> None:
    path = write(tmp_path / SEGMENT, SECOND)
    assert dump("--print-data-log", path).lines[-1].endswith(" key: key payload: three")


@pytest.mark.parametrize("cut", [1, 20, 60, 70])
def test_a_torn_tail_is_told_of(tmp_path: Path, cut: int) -> None:
    path = write(tmp_path / SEGMENT, FIRST, SECOND[:-cut])
    shown = dump("--deep-iteration", path)
    rest = len(SECOND) - cut
    assert shown.lines[-1] == f"Found {rest} invalid bytes at the end of {SEGMENT}"
    assert (shown.status, shown.complaints) == (0, [])


def test_an_empty_segment_has_nothing_to_show(tmp_path: Path) -> None:
    path = write(tmp_path / SEGMENT)
    assert dump(path).lines == [f"Dumping {path}", "Starting offset: 0"]


@pytest.mark.parametrize("codec", Codec)
def test_a_wrong_checksum_is_told_of_and_the_next_batch_is_shown(
    tmp_path: Path, codec: Codec
) -> None:
    damaged = make_batch(b"one" * 20, b"two" * 20, codec=codec)
    damaged[-1] ^= 0x55
    path = write(tmp_path / SEGMENT, damaged, SECOND)
    shown = dump("--print-data-log", path)
    batches = [line for line in shown.lines if line.startswith("baseOffset")]
    assert [line.rpartition(" ")[2] for line in batches] == ["false", "true"]
    assert shown.lines[-1].endswith("payload: three")


def test_records_that_cannot_be_read_cost_a_line(tmp_path: Path) -> None:
    damaged = make_batch(b"one" * 20, codec=Codec.GZIP)
    damaged[-20] ^= 0x55
    path = write(tmp_path / SEGMENT, FIRST, damaged, SECOND)
    shown = dump("--deep-iteration", path)
    assert len([line for line in shown.lines if line.startswith("baseOffset")]) == 3
    assert shown.complaints[0].startswith(f"{path}: batch at position {len(FIRST)}: Damaged gzip")
    assert shown.status == 1


@pytest.mark.parametrize(
    ("position", "value", "reason"),
    [(LENGTH_POSITION, 0xFF, "length of -"), (MAGIC_POSITION, 9, "magic 9")],
)
def test_where_no_batch_can_be_found_the_rest_is_told_of(
    tmp_path: Path, position: int, value: int, reason: str
) -> None:
    damaged = SECOND.copy()
    damaged[position] = value
    path = write(tmp_path / SEGMENT, FIRST, damaged, SECOND)
    shown = dump(path)
    rest = 2 * len(SECOND)
    assert shown.lines[-1] == f"Found {rest} invalid bytes at the end of {SEGMENT}"
    assert len(shown.complaints) == 1
    assert shown.complaints[0].startswith(f"{path}: position {len(FIRST)}: ")
    assert reason in shown.complaints[0]
    assert shown.status == 1


def test_an_unknown_codec_is_shown_by_its_number(tmp_path: Path) -> None:
    unknown = FIRST.copy()
    unknown[ATTRIBUTES_POSITION + 1] |= 7
    shown = dump("--deep-iteration", write(tmp_path / SEGMENT, reseal(unknown)))
    assert " compresscodec: UNKNOWN(7) " in shown.lines[-1]
    assert "Unknown compression codec 7" in shown.complaints[0]


def control_batch(key: bytes, value: bytes) -> bytearray:
    builder = BatchBuilder()
    builder.append(NOW, key, value)
    batch = builder.build()
    batch[ATTRIBUTES_POSITION + 1] |= CONTROL_FLAG
    return reseal(batch)


def test_a_control_record_of_an_unknown_type_is_shown_by_its_number(tmp_path: Path) -> None:
    path = write(tmp_path / SEGMENT, control_batch(CONTROL_KEY.pack(0, 5), b""))
    shown = dump("--print-data-log", path)
    assert shown.lines[-1].endswith(" headerKeys: [] controlType: UNKNOWN(5)")
    assert (shown.status, shown.complaints) == (0, [])


def test_a_control_record_that_is_none_costs_a_line(tmp_path: Path) -> None:
    path = write(tmp_path / SEGMENT, control_batch(b"key", b""), SECOND)
    shown = dump("--deep-iteration", path)
    assert shown.lines[-1].startswith("| offset: 2 ")
    assert "control record's key" in shown.complaints[0]
    assert shown.status == 1


def test_gaps_between_offsets_are_told_of_newest_first(tmp_path: Path) -> None:
    third = make_batch(b"x", base_offset=9)
    fourth = make_batch(b"y", base_offset=12)
    path = write(tmp_path / SEGMENT, FIRST, third, fourth)
    assert dump("--deep-iteration", path).complaints == [
        f"Non-consecutive offsets in {path}",
        "  9 is followed by 12",
        "  1 is followed by 9",
    ]
    assert dump(path).complaints == []


@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_are_shown_with_a_checksum_each(tmp_path: Path, magic: int) -> None:
    good = encode_message(magic, 0, NOW, b"k", b"good")
    bad = bytearray(encode_message(magic, 1, NOW, None, b"bad"))
    bad[-1] ^= 1
    shown = dump("--print-data-log", write(tmp_path / SEGMENT, good, bad))
    time = "NoTimestampType: -1" if magic == 0 else f"CreateTime: {NOW}"
    crc = CRC_FIELD.unpack_from(good, 12)[0]
    assert shown.lines[2:4] == [
        f"offset: 0 position: 0 {time} size: {len(good)} magic: {magic} compresscodec: NONE"
        f" crc: {crc} isvalid: true",
        f"| offset: 0 {time} keysize: 1 valuesize: 4 crc: {crc} isvalid: true key: k payload: good",
    ]
    assert shown.lines[5].startswith(f"| offset: 1 {time} keysize: -1 valuesize: 3 crc: ")
    assert shown.lines[5].endswith(" isvalid: false payload: bae")


def test_a_record_that_a_decoder_cannot_read_is_told_of_and_the_next_is_shown(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / SEGMENT, FIRST)
    for option in ("--offsets-decoder", "--transaction-log-decoder"):
        shown = dump(option, path)
        assert len(shown.lines) == 5
        assert [line.partition(": ")[2][:8] for line in shown.complaints] == [
            "offset 0",
            "offset 1",
        ]
        assert shown.status == 1
