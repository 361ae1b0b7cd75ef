"""The ceiling of a Python source: the same Arrow batch over and over, made before it is asked for.

What Spark does with it, from the socket to the row, is what any Python source has to pay. Options:
`rows` in all, and `bytes` of each value.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from analytics.decoding.block import ARROW_TYPES
from analytics.source.options import COLUMNS, record_columns

_BATCH_BYTES: Final = 2 << 20
_PARTITIONS: Final = 4


class PrebuiltSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "prebuilt"

    def schema(self) -> str:
        return ", ".join(f"`{name}` {COLUMNS[name]}" for name in record_columns({}))

    def reader(self, schema: StructType) -> DataSourceReader:
        return _PrebuiltReader(int(self.options["rows"]), int(self.options["bytes"]))


class _PrebuiltReader(DataSourceReader):
    def __init__(self, rows: int, value_bytes: int) -> None:
        self._rows = rows // _PARTITIONS
        self._value_bytes = value_bytes

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(_PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        batch = _batch(_BATCH_BYTES // self._value_bytes, self._value_bytes)
        for _ in range(self._rows // batch.num_rows):
            yield batch
        yield batch.slice(0, self._rows % batch.num_rows)


def _batch(rows: int, value_bytes: int) -> pa.RecordBatch:
    values = {
        "key": [b"key0000001"] * rows,
        "value": [bytes(value_bytes)] * rows,
        "topic": ["prebuilt"] * rows,
        "partition": [0] * rows,
        "offset": range(rows),
        "timestamp": [1_700_000_000_000_000] * rows,
        "timestampType": [0] * rows,
    }
    names = record_columns({})
    columns = [pa.array(values[name], ARROW_TYPES[name]) for name in names]
    return pa.RecordBatch.from_arrays(columns, list(names))
