"""The batch table as a Spark data source: `spark.read.format("barnabas-batches").load(DIR)`.

Owns what Spark asks of a source: a schema, splits, and rows for a split. Runs in Spark's Python
workers as well as in the driver, so it must not know sessions or commands.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from analytics.errors import AnalysisError
from analytics.log_dirs import Segment, find_partitions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

BATCHES = "barnabas-batches"

_BYTES_PER_SPLIT = 64 * 1024 * 1024


class SegmentSplit(InputPartition):
    """The segments that one task reads: a large one, or several small ones."""

    def __init__(self, segments: tuple[Segment, ...]) -> None:
        super().__init__(segments)
        self.segments = segments


class BatchSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return BATCHES

    def schema(self) -> str:
        from analytics.batch_table import SPARK_SCHEMA

        return SPARK_SCHEMA

    def reader(self, schema: StructType) -> "BatchReader":
        path = self.options.get("path")
        if not path:
            raise AnalysisError("name a log directory: .load(DIR)")
        return BatchReader(Path(path))


class BatchReader(DataSourceReader):
    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def partitions(self) -> Sequence[InputPartition]:
        segments = [segment for log in find_partitions(self.directory) for segment in log.segments]
        return plan_splits(segments)

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        from analytics.batch_table import read_segment

        assert isinstance(partition, SegmentSplit)
        for segment in partition.segments:
            yield from read_segment(segment)


def plan_splits(
    segments: Sequence[Segment], bytes_per_split: int = _BYTES_PER_SPLIT
) -> list[SegmentSplit]:
    """Segments in their order, as many to a split as its size allows; a large one stands alone.
    A task costs Spark more than a small file, and brokers have many small files."""
    splits: list[SegmentSplit] = []
    gathered: list[Segment] = []
    gathered_bytes = 0
    for segment in segments:
        if gathered and gathered_bytes + segment.size > bytes_per_split:
            splits.append(SegmentSplit(tuple(gathered)))
            gathered, gathered_bytes = [], 0
        gathered.append(segment)
        gathered_bytes += segment.size
    if gathered:
        splits.append(SegmentSplit(tuple(gathered)))
    return splits


def register(spark: "SparkSession") -> None:
    """Make the source known to a session."""
    spark.dataSource.register(BatchSource)
