"""Small tables, read by the process that asks for them.

Spark starts three Python processes, one after the other, before a source's first row arrives. What
is small has been read long before.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa
from pyspark.sql.datasource import CaseInsensitiveDict, DataSource
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A small file may hold much, well compressed.
_MOST_BYTES: Final = 128 << 20


def read_here(
    spark: "SparkSession",
    kind: type[DataSource],
    directories: Sequence[str],
    options: Mapping[str, str],
    most_bytes: int = _MOST_BYTES,
) -> "DataFrame | None":
    """A source's whole table; None if it does not fit into so many bytes of memory."""
    source = kind(CaseInsensitiveDict({**options, "paths": json.dumps(directories)}))
    schema = cast("StructType", StructType.fromDDL(str(source.schema())))
    batches, size = [], 0
    for batch in _batches(source, schema):
        batches.append(batch)
        size += batch.nbytes
        if size > most_bytes:
            return None
    table = pa.Table.from_batches(batches, to_arrow_schema(schema, timezone="UTC"))
    return spark.createDataFrame(table, schema)


def _batches(source: DataSource, schema: StructType) -> Iterator[pa.RecordBatch]:
    reader = source.reader(schema)
    for split in reader.partitions():
        yield from reader.read(split)
