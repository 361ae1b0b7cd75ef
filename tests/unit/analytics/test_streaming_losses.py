"""Streaming queries whose logs lose records: by retention, by deletion, by another log of the same
name."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from analytics.errors import AnalysisError
from tests.unit.analytics.segments import batch, write_segment
from tests.unit.analytics.streams import EARLIEST, offsets, old_reader, reader


def test_records_that_are_gone_end_the_query_unless_told_otherwise(tmp_path: Path) -> None:
    write_segment(tmp_path, "t-0", 10, [batch(10, 2)])
    start, end = {"t": {"0": 3}}, {"t": {"0": 12}}
    with pytest.raises(AnalysisError, match="t-0 begins at 10, not 3: records are gone"):
        reader(tmp_path).partitions(start, end)
    assert offsets(reader(tmp_path, failOnDataLoss="false"), start, end) == [10, 11]
    gone = {"t": {"0": 12}, "u": {"0": 1}}
    with pytest.raises(AnalysisError, match="there is no log of u-0 any more"):
        reader(tmp_path).partitions(end, gone)


def test_a_log_that_ends_before_what_was_read_is_data_loss(tmp_path: Path) -> None:
    file = write_segment(tmp_path, "t-0", 0, [batch(0, 2)])
    start = {"t": {"0": 9}}
    with pytest.raises(AnalysisError, match="t-0 ends at 2, not 9: records are gone"):
        reader(tmp_path).latestOffset(start, ReadAllAvailable())
    tolerant = reader(tmp_path, failOnDataLoss="false", maxOffsetsPerTrigger="5")
    end = tolerant.latestOffset(start, tolerant.getDefaultReadLimit())
    assert end == {"t": {"0": 2}}
    assert offsets(tolerant, start, end) == []
    with file.open("ab") as opened:
        opened.write(batch(2, 2))
    assert offsets(tolerant, end, tolerant.latestOffset(end, ReadAllAvailable())) == [2, 3]


def test_a_batch_that_is_read_again_from_a_shorter_log_is_data_loss(tmp_path: Path) -> None:
    write_segment(tmp_path, "t-0", 0, [batch(0, 5)])
    start, end = {"t": {"0": 3}}, {"t": {"0": 9}}
    with pytest.raises(AnalysisError, match="t-0 ends at 5, not 9: records are gone"):
        reader(tmp_path).partitions(start, end)
    assert offsets(reader(tmp_path, failOnDataLoss="false"), start, end) == [3, 4]


@pytest.mark.parametrize("is_old", [True, False])
def test_a_topic_that_is_gone_is_data_loss_and_a_new_one_of_its_name_is_read_from_its_beginning(
    tmp_path: Path, is_old: bool
) -> None:
    def latest(stream: Any, start: Any) -> Any:
        return stream.latestOffset() if is_old else stream.latestOffset(start, ReadAllAvailable())

    make = old_reader if is_old else reader
    write_segment(tmp_path, "t-0", 0, [batch(0, 5)])
    write_segment(tmp_path, "u-0", 0, [batch(0, 5)])
    strict = make(tmp_path, **EARLIEST)
    tolerant = make(tmp_path, failOnDataLoss="false", **EARLIEST)
    begun = [(stream, latest(stream, stream.initialOffset())) for stream in (strict, tolerant)]
    shutil.rmtree(tmp_path / "t-0")
    with pytest.raises(AnalysisError, match="there is no log of t-0 any more: records are gone"):
        latest(*begun[0])
    stream, end = begun[1]
    without = latest(stream, end)
    assert without == {"u": {"0": 5}}
    write_segment(tmp_path, "t-0", 0, [batch(0, 3)])
    assert offsets(stream, without, latest(stream, without)) == [0, 1, 2]


def test_a_directory_that_is_away_for_a_while_comes_back_with_its_progress(tmp_path: Path) -> None:
    write_segment(tmp_path / "mounted", "t-0", 0, [batch(0, 5)])
    stream = reader(tmp_path / "mounted", failOnDataLoss="false", **EARLIEST)
    end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    (tmp_path / "mounted").rename(tmp_path / "away")
    assert stream.latestOffset(end, ReadAllAvailable()) == end
    (tmp_path / "away").rename(tmp_path / "mounted")
    assert stream.latestOffset(end, ReadAllAvailable()) == end


def test_records_that_go_before_the_first_batch_is_read_are_data_loss(tmp_path: Path) -> None:
    first = write_segment(tmp_path, "t-0", 0, [batch(0, 10)])
    write_segment(tmp_path, "t-0", 10, [batch(10, 10)])
    stream = reader(tmp_path, **EARLIEST)
    end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    first.unlink()
    start = stream.initialOffset()  # Spark asks again when it plans the batch
    assert start == {"t": {"0": 0}}
    with pytest.raises(AnalysisError, match="t-0 begins at 10, not 0: records are gone"):
        stream.partitions(start, end)


def test_a_new_partition_that_has_lost_its_beginning_is_data_loss(tmp_path: Path) -> None:
    write_segment(tmp_path, "t-0", 0, [batch(0, 5)])
    start = {"t": {"0": 5}}
    write_segment(tmp_path, "t-1", 10, [batch(10, 2)])
    strict, tolerant = reader(tmp_path), reader(tmp_path, failOnDataLoss="false")
    end = strict.latestOffset(start, ReadAllAvailable())
    with pytest.raises(AnalysisError, match="t-1 begins at 10, not 0: records are gone"):
        strict.partitions(start, end)
    assert offsets(tolerant, start, end) == [10, 11]


def test_a_new_partition_that_is_gone_again_is_data_loss_and_no_crash(tmp_path: Path) -> None:
    write_segment(tmp_path, "t-0", 0, [batch(0, 5)])
    write_segment(tmp_path, "t-1", 0, [batch(0, 5)])
    stream = reader(tmp_path, maxOffsetsPerTrigger="4")
    start = {"t": {"0": 0}}
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    shutil.rmtree(tmp_path / "t-1")
    assert end == {"t": {"0": 2, "1": 2}}
    with pytest.raises(AnalysisError, match="there is no log of t-1 any more"):
        stream.partitions(start, end)
