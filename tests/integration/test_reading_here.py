"""Tables that the asking process reads itself are those that Spark's workers read."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from analytics.source.reading_here import read_here
from analytics.source.sources import BatchSource, ProblemSource, RecordSource
from tests.integration.varied_data import Varied, varied
from tests.unit.analytics.segments import batch, write_segment

pytestmark = pytest.mark.timeout(600)  # Spark's start is heavy on a busy machine


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Varied:
    return varied(spark, tmp_path_factory.getbasetemp() / "varied")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"includeHeaders": "true", "isolationLevel": "read_committed"},
        {"subscribe": "ticks", "startingOffsets": "earliest", "checkCrc": "true"},
    ],
)
@pytest.mark.parametrize("kind", [RecordSource, BatchSource, ProblemSource])
def test_rows_and_schema_are_those_of_spark(
    spark: SparkSession, written: Varied, kind: type[DataSource], options: dict[str, str]
) -> None:
    directories = list(written.directories)
    of_spark = spark.read.format(kind.name()).options(**options).load(directories)
    here = read_here(spark, kind, directories, options)
    assert here is not None
    assert here.schema == of_spark.schema
    assert sorted(map(str, here.collect())) == sorted(map(str, of_spark.collect()))


def test_what_is_too_large_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    write_segment(tmp_path, "t-0", 0, [batch(number * 100, 100) for number in range(5)])
    small = read_here(spark, RecordSource, [str(tmp_path)], {}, most_bytes=10**6)
    assert small is not None
    assert small.count() == 500
    assert read_here(spark, RecordSource, [str(tmp_path)], {}, most_bytes=1000) is None
