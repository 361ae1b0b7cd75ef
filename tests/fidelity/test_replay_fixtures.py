"""The batches of a log of Kafka's, appended here one by one, make the very files Kafka made."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from storage.append_info import AppendOrigin
from storage.environment import Environment
from storage.log import Log
from storage.records import Batch
from storage.records.layout import set_base_offset
from storage.time_index import TimeIndex
from tests.fidelity.fixture_logs import FixtureLog, batches_of, fixture_logs, time_of_making
from tests.fidelity.test_open_fixtures import producers_in

APPENDED_BATCH_BY_BATCH = (
    *(f"sent-{codec}" for codec in ("none", "gzip", "snappy", "lz4", "zstd")),
    *(f"stored-{codec}" for codec in ("none", "gzip", "snappy", "lz4", "zstd")),
    "idempotent",
    "transactional",
)


def replayable() -> list[FixtureLog]:
    return [log for log in fixture_logs() if log.topic in APPENDED_BATCH_BY_BATCH]


def open_log(fixture: FixtureLog, path: Path, end_offset: int) -> Log:
    environment = Environment(clock=lambda: time_of_making(fixture.release))
    return Log(environment, path, fixture.config, recovery_point=end_offset, clean=True)


def replay(fixture: FixtureLog, path: Path) -> None:
    """Append all batches of a log to a new one, with a restart where Kafka was restarted."""
    log = open_log(fixture, path, 0)
    epoch = 0
    for batch in all_batches(fixture):
        header = batch.header
        if header.partition_leader_epoch != epoch:
            epoch = header.partition_leader_epoch
            log.flush()
            log.close()
            log = open_log(fixture, path, log.end_offset)
        origin = AppendOrigin.COORDINATOR if header.is_control else AppendOrigin.CLIENT
        sent = bytearray(batch.data)
        set_base_offset(sent, 0)  # as a producer sends it
        info = log.append_as_leader(sent, epoch, origin)
        assert info.first_offset == header.base_offset
        log.update_high_watermark(log.end_offset)
    log.flush()
    log.close()


def all_batches(fixture: FixtureLog) -> Iterator[Batch]:
    return chain.from_iterable(batches_of(path) for path in fixture.files(".log"))


@pytest.mark.parametrize("fixture", replayable(), ids=str)
def test_replayed_batches_make_the_same_files(fixture: FixtureLog, tmp_path: Path) -> None:
    path = tmp_path / fixture.name
    replay(fixture, path)
    for suffix in (".log", ".index", ".txnindex"):
        before = {p.name: p.read_bytes() for p in fixture.files(suffix)}
        assert {p.name: p.read_bytes() for p in path.glob(f"*{suffix}")} == before
    for kafkas in fixture.files(".timeindex"):
        assert timestamps_in(path / kafkas.name) == timestamps_in(kafkas)
        # Of plain batches Kafka 2.5 notes the offset of the youngest record, not the batch's last,
        # which its own dump tool then complains about; later releases do as we do.
        if (fixture.release, fixture.topic) not in RECORD_OFFSETS_IN_TIME_INDEX:
            assert (path / kafkas.name).read_bytes() == kafkas.read_bytes()
    last_snapshot = fixture.files(".snapshot")[-1]
    assert producers_in((path / last_snapshot.name).read_bytes()) == producers_in(
        last_snapshot.read_bytes()
    )
    epochs = "leader-epoch-checkpoint"
    assert (path / epochs).read_bytes() == (fixture.path / epochs).read_bytes()


RECORD_OFFSETS_IN_TIME_INDEX = {
    ("2.5.1", "sent-none"),
    ("2.5.1", "idempotent"),
    ("2.5.1", "transactional"),
}


def timestamps_in(path: Path) -> list[int]:
    environment = Environment(clock=lambda: 0)
    size = path.stat().st_size
    index = TimeIndex(environment, str(path), int(path.stem), size, size)
    return [index.entry(slot)[0] for slot in range(index.entries)]
