"""Random logs with random damage, read with random options: against a plain list of what was
written."""

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from analytics.errors import AnalysisError
from analytics.problems import DamagedLogError
from analytics.source.options import parse_options
from analytics.source.readers import BatchReader, ProblemReader, RecordReader
from tests.unit.analytics.random_logs import Written, WrittenBatch
from tests.unit.analytics.random_queries import Scene, as_moment, scene
from tests.unit.analytics.reading import rows_of
from tests.unit.analytics.reference import QueryFails, columns_of, expected_rows, passes

SEEDS = 25
SHORT_SOAK_SEEDS, SOAK_SEEDS = 150, 5000


def check_records(made: Scene) -> None:
    reader = RecordReader(parse_options(made.options))
    reader.take_filters(made.filters)
    try:
        expected = expected_rows(made)
    except QueryFails:
        with pytest.raises(AnalysisError):
            rows_of(reader)
        return
    except DamagedLogError:
        with pytest.raises(DamagedLogError):
            rows_of(reader)
        return
    try:
        rows = rows_of(reader)
    except DamagedLogError:
        assert made.options["onDamage"] == "fail"
        assert made.filters or has_damaged_wrapper(made)
        return
    by_name = {(log.topic, log.partition): log for log in made.logs}
    found = []
    for row in rows:
        if made.filters and "timestamp" in row:
            log = by_name[row["topic"], row["partition"]]
            stamp = round(row["timestamp"].timestamp() * 1000)
            record = Written(row["offset"], stamp, 0, None, None, None)
            if not passes(made.filters, log, record):
                continue
        found.append(tuple(row.values()))
    if made.filters and "timestamp" not in columns_of(made):
        assert {*map(str, found)} >= {*map(str, expected)}
    else:
        assert found == expected


def has_damaged_wrapper(made: Scene) -> bool:
    """A compressed message of the old formats, whose header does not tell its first offset: what
    it holds may be wanted."""
    batches = [one for log in made.logs for one in log.batches]
    return any(one.is_damaged and one.magic < 2 and one.codec for one in batches)


def check_batches(made: Scene, random: Random) -> None:
    options = {
        "path": str(made.directory),
        "maxBytesPerTask": made.options["maxBytesPerTask"],
        "checkCrc": random.choice(("true", "false")),
        "onDamage": "skip",
    }
    rows = rows_of(BatchReader(parse_options(options)))
    by_log: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in rows:
        by_log.setdefault((row["topic"], row["partition"]), []).append(row)
    assert by_log.keys() == {(log.topic, log.partition) for log in made.logs}
    for log in made.logs:
        found = by_log[log.topic, log.partition]
        assert len(found) == len(log.batches)
        for row, one in zip(found, log.batches, strict=True):
            check_batch(row, one, options["checkCrc"] == "true")


def check_batch(row: dict[str, Any], one: WrittenBatch, has_crc: bool) -> None:
    assert row["last_offset"] == one.last_offset
    assert row["bytes"] == one.size
    assert row["magic"] == one.magic
    assert row["codec"] == one.codec.name.lower()
    assert row["producer_id"] == one.producer_id
    assert row["is_control"] == one.is_control
    assert row["is_transactional"] == one.is_transactional
    assert row["crc_ok"] == (not one.is_damaged if has_crc else None)
    if not one.is_damaged:
        assert row["base_offset"] == one.base_offset
        assert row["record_count"] == len(one.records)
    if one.max_timestamp >= 0:
        assert row["last_timestamp"] == as_moment(one.max_timestamp)


def check_problems(made: Scene) -> None:
    options = {"path": str(made.directory), "maxBytesPerTask": made.options["maxBytesPerTask"]}
    rows = rows_of(ProblemReader(parse_options(options)))
    found = sorted((row["topic"], row["partition"], row["kind"], row["bytes"]) for row in rows)
    expected = [
        (log.topic, log.partition, "wrong crc", one.size)
        for log in made.logs
        for one in log.batches
        if one.is_damaged
    ]
    expected += [(*name, "torn tail", size) for name, size in made.torn.items()]
    assert found == sorted(expected)


def run(seed: int, directory: Path) -> None:
    random = Random(seed)
    made = scene(random, directory)
    try:
        check_records(made)
        check_batches(made, random)
        check_problems(made)
    finally:
        for log in made.logs:
            log.log.abandon()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_logs_are_read_as_they_were_written(seed: int, tmp_path: Path) -> None:
    run(seed, tmp_path)


@pytest.mark.soak
def test_thousands_of_random_logs(tmp_path: Path) -> None:
    is_short = os.environ.get("BARNABAS_SOAK") == "short"
    for seed in range(SEEDS, SEEDS + (SHORT_SOAK_SEEDS if is_short else SOAK_SEEDS)):
        directory = tmp_path / str(seed)
        directory.mkdir()
        run(seed, directory)
