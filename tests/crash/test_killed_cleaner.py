"""A cleaner that is killed at any of its system calls: no key loses its last value."""

import os
import shutil
from pathlib import Path
from random import Random

import pytest

from storage.append_info import AppendOrigin
from storage.compaction.compact import compact_log
from storage.environment import Environment
from storage.files import Files
from storage.log import Log
from storage.log_config import LogConfig
from storage.records.batches import iter_batches, iter_records
from storage.records.builder import BatchBuilder, ProducerInfo, build_end_txn_batch
from storage.records.control import ControlType, EndTxnMarker
from storage.records.layout import Codec
from tests.crash.dying import Died, DyingFiles
from tests.crash.inspection import check_index_entries, check_offsets, read_all
from tests.crash.workload import NOW

CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    segment_bytes=4_000,
    index_interval_bytes=200,
    segment_index_bytes=1_000,
    max_message_bytes=4_000,
)
NEVER = 1 << 30
APPENDS = 150
KEYS = 12

# Offset, key and value of a record.
Content = list[tuple[int, bytes | None, bytes | None]]


def open_log(directory: Path, files: Files | None = None, *, clean: bool = False) -> Log:
    log = Log(
        Environment(clock=lambda: NOW, files=files or Files()),
        directory / "topic-0",
        CONFIG,
        clean=clean,
        recovery_point=NEVER,
    )
    log.update_high_watermark(log.end_offset)
    return log


def write_log(directory: Path) -> None:
    """Some keys again and again, some of it in transactions."""
    random = Random(1)
    log = open_log(directory, clean=True)
    sequences = dict.fromkeys((7, 8), 0)
    for number in range(APPENDS):
        producer = ProducerInfo()
        producer_id = random.choice((None, None, 7, 8))
        if producer_id is not None:
            sequence = sequences[producer_id]
            producer = ProducerInfo(producer_id, 0, sequence, is_transactional=True)
        builder = BatchBuilder(codec=random.choice(tuple(Codec)), producer=producer)
        for _ in range(random.choice((1, 3))):
            key = b"key %d" % random.randrange(KEYS)
            builder.append(NOW + number, key, b"value %d " % number * 5)
        log.append_as_leader(builder.build(), 0)
        if producer_id is not None:
            sequences[producer_id] += builder.record_count
            outcome = random.choice((ControlType.COMMIT, ControlType.COMMIT, ControlType.ABORT))
            marker = EndTxnMarker(outcome, 0)
            batch = build_end_txn_batch(NOW + number, producer_id, 0, marker)
            log.append_as_leader(batch, 0, AppendOrigin.COORDINATOR)
    log.roll()
    log.flush()
    log.close()


def content_of(log: Log) -> Content:
    return [
        (record.offset, record.key, record.value)
        for segment in log.segments
        for batch in iter_batches(segment.descriptor().read(segment.size, 0))
        for record in iter_records(batch)
    ]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("written")
    write_log(directory)
    return directory


@pytest.fixture(scope="module")
def cleaned(written: Path, tmp_path_factory: pytest.TempPathFactory) -> Content:
    """What is left when nobody interferes."""
    directory = tmp_path_factory.mktemp("cleaned") / "logs"
    shutil.copytree(written, directory)
    log = open_log(directory, clean=True)
    before = content_of(log)
    assert compact_log(log) is not None
    after = content_of(log)
    assert len(after) < len(before) / 2
    return after


def calls_of_a_cleaning(written: Path, directory: Path) -> int:
    shutil.copytree(written, directory)
    files = DyingFiles(NEVER, Random(1))
    log = open_log(directory, files, clean=True)
    before = files.counted
    compact_log(log)
    return files.counted - before


def check_killed_cleaner(written: Path, directory: Path, cleaned: Content, call: int) -> None:
    print(f"killed at call {call}")
    shutil.copytree(written, directory)
    files = DyingFiles(NEVER, Random(call))
    log = open_log(directory, files, clean=True)
    files.die_at(files.counted + call)
    before = content_of(log)
    end_offset = log.end_offset
    with pytest.raises(Died):
        compact_log(log)
    for clean in (False, True):
        reopened = open_log(directory, clean=clean)
        found = content_of(reopened)
        assert found == sorted(set(found)), "out of order, or there twice"
        assert set(cleaned) <= set(found) <= set(before)
        assert reopened.end_offset == end_offset
        batches = read_all(reopened, Random(call))
        check_offsets(reopened, batches, Random(call))
        for segment in reopened.segments:
            check_index_entries(segment)
    assert not [path for path in reopened.directory.iterdir() if path.suffix == ".swap"]
    compact_log(reopened)
    assert content_of(reopened) == cleaned
    shutil.rmtree(directory)


def test_keys_keep_their_last_values_when_the_cleaner_is_killed(
    written: Path, tmp_path: Path, cleaned: Content
) -> None:
    total = calls_of_a_cleaning(written, tmp_path / "counted")
    for call in range(1, total, max(total // 25, 1)):
        check_killed_cleaner(written, tmp_path / "logs", cleaned, call)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_keys_keep_their_last_values_wherever_the_cleaner_is_killed(
    written: Path, tmp_path: Path, cleaned: Content
) -> None:
    step = 5 if os.environ.get("BARNABAS_SOAK") == "short" else 1
    for call in range(1, calls_of_a_cleaning(written, tmp_path / "counted"), step):
        check_killed_cleaner(written, tmp_path / "logs", cleaned, call)
