"""The tables as Spark data sources: `spark.read.format("barnabas").load(DIR)` and its siblings.

Owns their names and schemas, and the choice of a reader. Spark loads this module in every Python
worker that plans, so it loads nothing that only tasks need.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from analytics.source.options import COLUMNS, TaskBytes, parse_options, record_columns
from analytics.source.readers import (
    BatchReader,
    FilteringBatchReader,
    FilteringRecordReader,
    ProblemReader,
    RecordReader,
    takes_filters,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS: Final = "barnabas"
BATCHES: Final = "barnabas-batches"
PROBLEMS: Final = "barnabas-problems"

# Headers are read at many times the speed of records.
_HEADER_TASKS: Final = TaskBytes(2 << 30, 4 << 30)

BATCH_SCHEMA: Final = """
    topic string, partition int, base_offset bigint, last_offset bigint, record_count int,
    bytes int, magic int, codec string, timestamp_type string, first_timestamp timestamp,
    last_timestamp timestamp, producer_id bigint, producer_epoch int, base_sequence int,
    is_transactional boolean, is_control boolean, control_type string, leader_epoch int,
    log_dir string, segment string, position bigint, crc_ok boolean
"""
PROBLEM_SCHEMA: Final = """
    topic string, partition int, kind string, base_offset bigint, position bigint, bytes bigint,
    detail string, log_dir string, segment string
"""


class RecordSource(DataSource):
    """One row per record, in the columns of Spark's Kafka source."""

    @classmethod
    def name(cls) -> str:
        return RECORDS

    def schema(self) -> str:
        return ", ".join(f"`{name}` {COLUMNS[name]}" for name in record_columns(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        options = parse_options(self.options)
        kind = FilteringRecordReader if takes_filters(options) else RecordReader
        return kind(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from analytics.source.streaming import stream_reader

        return stream_reader(parse_options(self.options, is_streaming=True))


class BatchSource(DataSource):
    """One row per batch, from the headers alone."""

    @classmethod
    def name(cls) -> str:
        return BATCHES

    def schema(self) -> str:
        return BATCH_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        options = parse_options(self.options, task_bytes=_HEADER_TASKS)
        if options.checks_crc:
            options = parse_options(self.options)
        kind = FilteringBatchReader if takes_filters(options) else BatchReader
        return kind(options)


class ProblemSource(DataSource):
    """One row for each thing that cannot be read."""

    @classmethod
    def name(cls) -> str:
        return PROBLEMS

    def schema(self) -> str:
        return PROBLEM_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        return ProblemReader(parse_options(self.options))


def register(spark: "SparkSession") -> None:
    """Make the sources known to a session. Those that Spark has found by itself stay."""
    from pyspark.errors import PySparkException

    _prepare_workers(spark)
    for source in (RecordSource, BatchSource, ProblemSource):
        try:
            spark.dataSource.register(source)
        except PySparkException as error:
            if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                raise


def _prepare_workers(spark: "SparkSession") -> None:
    """Have Spark's Python workers run as this driver does."""
    try:
        context = spark.sparkContext
    except AttributeError:  # Spark Connect: the workers are another machine's
        return
    if str(context.master).startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable  # else any python3 of the PATH, with other packages
    _share_code(context.environment)


def _share_code(environment: dict[str, str]) -> None:
    """Have workers find this code where the driver has found it. A streaming query of PySpark 4.3
    starts a worker that is not told of --py-files."""
    home = str(Path(__file__).parents[2])
    known = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*known, home]))
