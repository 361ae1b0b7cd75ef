"""Names of places, and logs that lie in an object store, through PyArrow's own S3 client."""

import os
from pathlib import Path

import pytest

from analytics.errors import AnalysisError
from analytics.logs import places
from tests.fidelity.fixture_logs import data_directory, fixture_logs
from tests.support.object_store import object_store
from tests.unit.analytics.logs import write_log
from tests.unit.analytics.reading import as_consumed, offsets, records


def test_names_are_joined_and_split_with_their_options_kept() -> None:
    assert places.join("/logs", "t-0") == "/logs/t-0"
    assert places.split("/logs/t-0") == ("/logs", "t-0")
    uri = "s3://k:s@bucket/logs?region=x"
    assert places.join(uri, "t-0") == "s3://k:s@bucket/logs/t-0?region=x"
    assert places.split("s3://k:s@bucket/logs/t-0?region=x") == (uri, "t-0")
    assert places.join("hdfs://host:1/", "a") == "hdfs://host:1/a"


def test_logs_in_an_object_store_are_read_in_splits_and_by_index(tmp_path: Path) -> None:
    write_log(tmp_path / "cluster", 1000).close()
    options = {"startingOffsets": '{"topic": {"0": 700}}', "maxBytesPerTask": "5000"}
    with object_store(tmp_path) as bucket:
        assert offsets(places.join(bucket, "cluster"), **options) == list(range(700, 1000))
        assert offsets(bucket) == list(range(1000))
        assert offsets(bucket.replace("s3:", "s3a:")) == list(range(1000))  # as Hadoop's users say
        with pytest.raises(AnalysisError, match="there is no such directory"):
            offsets(places.join(bucket, "nope"))


def test_a_folder_that_a_store_does_not_list_is_an_error_and_not_empty(tmp_path: Path) -> None:
    write_log(tmp_path / "first", 10).close()
    write_log(tmp_path / "second", 10).close()
    with (
        object_store(tmp_path, closed="second") as bucket,
        pytest.raises(AnalysisError, match=r"second.*: cannot be read: .*ACCESS_DENIED"),
    ):
        offsets(bucket)


def test_transactions_in_an_object_store_are_those_that_a_consumer_saw() -> None:
    (log,) = (log for log in fixture_logs() if str(log) == "3.9.1:transactional-0")
    with object_store(data_directory("3.9.1")) as bucket:
        rows = records(
            bucket,
            subscribe="transactional",
            isolationLevel="read_committed",
            includeHeaders="true",
        )
    assert [as_consumed(row) for row in rows] == log.consumed("read_committed")


@pytest.mark.timeout(10)
def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/null")):
        with pytest.raises(places.NoRegularFileError):
            places.open_file(str(path))
