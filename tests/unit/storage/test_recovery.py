"""What a log makes of files that a crash or a bad disk left behind."""

from pathlib import Path

import pytest

from storage.log_config import LogConfig
from tests.unit.storage.support import append_values, open_log, read_values

CONFIG = LogConfig(segment_bytes=1000, index_interval_bytes=100)


def write_log(directory: Path, count: int = 30) -> list[tuple[int, bytes]]:
    log = open_log(directory, CONFIG)
    records = [(number, f"value {number}".encode()) for number in range(count)]
    append_values(log, *(value for _, value in records))
    log.close()
    return records


def reopened_values(directory: Path, *, clean: bool = False) -> list[tuple[int, bytes | None]]:
    log = open_log(directory, CONFIG, clean=clean)
    log.update_high_watermark(log.end_offset)
    return read_values(log)


def last_segment(directory: Path) -> Path:
    return max((directory / "topic-0").glob("*.log"))


@pytest.mark.parametrize("missing", [1, 30, 62, 78])
def test_torn_tail_is_cut_off(tmp_path: Path, missing: int) -> None:
    records = write_log(tmp_path)
    segment = last_segment(tmp_path)
    segment.write_bytes(segment.read_bytes()[:-missing])
    survivors = reopened_values(tmp_path)
    assert survivors == records[: len(survivors)]
    assert len(survivors) == 29
    assert reopened_values(tmp_path) == survivors


def test_zeros_after_the_last_batch_are_cut_off(tmp_path: Path) -> None:
    records = write_log(tmp_path)
    segment = last_segment(tmp_path)
    size = segment.stat().st_size
    with segment.open("ab") as file:
        file.write(bytes(5000))
    assert reopened_values(tmp_path) == records
    assert segment.stat().st_size == size


def test_flipped_byte_ends_the_log_there(tmp_path: Path) -> None:
    records = write_log(tmp_path)
    first = min((tmp_path / "topic-0").glob("*.log"))
    data = bytearray(first.read_bytes())
    data[200] ^= 0xFF
    first.write_bytes(data)
    survivors = reopened_values(tmp_path)
    assert survivors == records[:2]


@pytest.mark.parametrize("kind", ["index", "timeindex"])
@pytest.mark.parametrize("damage", ["missing", "short", "torn"])
def test_damaged_indexes_are_rebuilt(tmp_path: Path, kind: str, damage: str) -> None:
    records = write_log(tmp_path)
    for index in (tmp_path / "topic-0").glob(f"*.{kind}"):
        if damage == "missing":
            index.unlink()
        elif damage == "short":
            index.write_bytes(b"")
        else:
            index.write_bytes(index.read_bytes()[:-3])
    assert reopened_values(tmp_path, clean=True) == records


def test_leftovers_of_deletion_and_cleaning_are_removed(tmp_path: Path) -> None:
    records = write_log(tmp_path)
    directory = tmp_path / "topic-0"
    for name in ("00000000000000000000.log.deleted", "00000000000000000003.log.cleaned"):
        (directory / name).write_bytes(b"leftover")
    (directory / "00000000000000000099.index").write_bytes(b"orphan")
    assert reopened_values(tmp_path) == records
    names = {path.name for path in directory.iterdir()}
    assert not any(name.endswith((".deleted", ".cleaned")) for name in names)
    assert "00000000000000000099.index" not in names


def test_interrupted_replacement_is_completed(tmp_path: Path) -> None:
    records = write_log(tmp_path)
    directory = tmp_path / "topic-0"
    first, second = sorted(directory.glob("*.log"))[:2]
    first.with_suffix(".log.swap").write_bytes(first.read_bytes() + second.read_bytes())
    assert reopened_values(tmp_path) == records
    assert not list(directory.glob("*.swap"))
    assert not second.exists()
