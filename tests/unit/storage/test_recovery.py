"""What a log makes of files that a crash or a bad disk left behind."""

import contextlib
from pathlib import Path
from random import Random

import pytest

from storage.batch_scan import scan_batches
from storage.faulty_files import Fault, FaultyFiles
from storage.log_config import INT32_MAX, LogConfig
from storage.replacement import replace_segments
from storage.segment import Segment
from storage.segment_files import CLEANED_SUFFIX
from storage.time_index import TimeIndex
from tests.unit.storage.support import NOW, append_values, make_batch, open_log, read_values

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


@pytest.mark.parametrize("steps", range(20))
def test_replacement_of_segments_survives_a_crash_at_every_rename(
    tmp_path: Path, steps: int
) -> None:
    """Two segments are merged into one; the filesystem fails after some of the renames."""
    records = write_log(tmp_path)
    files = FaultyFiles()
    log = open_log(tmp_path, CONFIG, files=files, clean=True)
    old = list(log.segments)[:2]
    merged = Segment.create(log.environment, str(log.directory), 0, CONFIG, CLEANED_SUFFIX)
    for segment in old:
        for scanned in scan_batches(segment.descriptor(), 0, segment.size):
            header, data = scanned.batch
            merged.append(
                data,
                header.base_offset,
                header.last_offset,
                header.max_timestamp,
                header.last_offset,
            )
    merged.become_inactive()
    files.faults.append(Fault("replace", skip=steps))
    with contextlib.suppress(OSError):
        replace_segments(log.environment, log.segments, [merged], old, 0)
    for clean in (True, False):
        assert reopened_values(tmp_path, clean=clean) == records
    names = [path.name for path in (tmp_path / "topic-0").iterdir()]
    assert not [name for name in names if name.endswith((".cleaned", ".swap"))]


def test_segments_too_wide_for_their_index_are_split(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    directory = log.directory
    log.close()
    offsets = [0, 5, INT32_MAX + 10, INT32_MAX + 11, 3 * INT32_MAX]
    batches = b"".join(make_batch(str(o).encode(), base_offset=o) for o in offsets)
    (directory / f"{0:020d}.log").write_bytes(batches)
    split = open_log(tmp_path)
    split.update_high_watermark(split.end_offset)
    assert [s.base_offset for s in split.segments] == [0, INT32_MAX + 10, 3 * INT32_MAX]
    assert read_values(split) == [(offset, str(offset).encode()) for offset in offsets]


@pytest.mark.parametrize("kind", ["index", "timeindex"])
@pytest.mark.parametrize("seed", range(10))
def test_flipped_bits_in_an_index_never_hide_records(tmp_path: Path, kind: str, seed: int) -> None:
    log = open_log(tmp_path, CONFIG)
    for number in range(30):
        log.append_as_leader(make_batch(str(number).encode(), timestamp=NOW + number), 0)
    log.close()
    random = Random(seed)
    for path in (tmp_path / "topic-0").glob(f"*.{kind}"):
        data = bytearray(path.read_bytes())
        for _ in range(3):
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        path.write_bytes(data)
    reopened = open_log(tmp_path, CONFIG, clean=True)
    reopened.update_high_watermark(30)
    for number in range(30):
        assert read_values(reopened, number)[0] == (number, str(number).encode())
        assert reopened.offset_for_timestamp(NOW + number) == (NOW + number, number, 0)


def test_tail_that_is_no_batch_is_cut_even_after_a_clean_stop(tmp_path: Path) -> None:
    records = write_log(tmp_path)
    segment = last_segment(tmp_path)
    segment.write_bytes(segment.read_bytes() + b"torn")
    assert reopened_values(tmp_path, clean=True) == records
    log = open_log(tmp_path, CONFIG, clean=True)
    assert append_values(log, b"more") == [30]


def test_segments_before_the_start_offset_are_dropped_if_the_log_ends_before_it(
    tmp_path: Path,
) -> None:
    write_log(tmp_path)
    log = open_log(tmp_path, CONFIG, start_offset=500)
    assert (log.start_offset, log.end_offset) == (500, 500)
    assert append_values(log, b"new") == [500]


def test_what_recovery_found_sound_is_not_taken_to_be_on_the_disk(tmp_path: Path) -> None:
    write_log(tmp_path)
    log = open_log(tmp_path, CONFIG, recovery_point=12)
    assert (log.end_offset, log.recovery_point) == (30, 12)
    assert open_log(tmp_path, CONFIG, clean=True, recovery_point=12).recovery_point == 30


def test_rebuilding_an_old_index_leaves_snapshots_alone(tmp_path: Path) -> None:
    write_log(tmp_path)
    directory = tmp_path / "topic-0"
    snapshots = sorted(path.name for path in directory.glob("*.snapshot"))
    assert len(snapshots) > 2
    (directory / f"{0:020d}.index").unlink()
    open_log(tmp_path, CONFIG, clean=True)
    assert (directory / f"{0:020d}.index").exists()
    assert sorted(path.name for path in directory.glob("*.snapshot")) == snapshots


def test_the_last_time_index_entry_may_be_lost_after_the_last_flush(tmp_path: Path) -> None:
    """It is written when a segment is rolled, and nothing else of that segment is to be flushed."""
    log = open_log(tmp_path, CONFIG)
    for number in range(4):
        append_values(log, b"value", timestamp=NOW + number)
    assert log.segments.active.indexes.times.last_entry == (NOW + 2, 2)
    log.flush()
    time_index = Path(log.segments.active.path("timeindex"))
    flushed = time_index.read_bytes()[: TimeIndex.ENTRY.size]
    log.roll()
    append_values(log, b"value", timestamp=NOW)
    log.release_files()
    time_index.write_bytes(flushed)
    for _ in range(2):
        reopened = open_log(tmp_path, CONFIG, recovery_point=4)
        assert reopened.segments.first.largest == (NOW + 3, 3)
        youngest = reopened.max_timestamp_offset()
        assert youngest is not None
        assert youngest[:2] == (NOW + 3, 3)
        reopened.release_files()
    assert open_log(tmp_path, CONFIG, clean=True).segments.first.largest == (NOW + 3, 3)
