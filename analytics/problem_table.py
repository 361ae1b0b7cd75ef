"""The problems table: one row for each thing in segments that keeps batches or records from being
read.

Owns the check of everything that a reader would meet. Knows files and batches, not Spark.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

from analytics.pieces import Piece
from analytics.problems import Problem
from analytics.record_table import RecordQuery, read_records

ARROW_SCHEMA: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("kind", pa.string()),
        ("base_offset", pa.int64()),
        ("position", pa.int64()),
        ("bytes", pa.int64()),
        ("detail", pa.string()),
        ("log_dir", pa.string()),
        ("segment", pa.string()),
    ]
)


def read_problems(pieces: Iterable[Piece], fail_on_data_loss: bool) -> Iterator[pa.RecordBatch]:
    """Check every checksum and open every batch. One Arrow batch per piece that has problems."""
    query = RecordQuery(
        columns=("offset", "headers"), fail_on_data_loss=fail_on_data_loss, checks_all=True
    )
    for piece in pieces:
        found: list[Problem] = []
        for _ in read_records([piece], query, found.append):
            pass
        if found:
            columns = zip(*found, strict=True)
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(column, field.type)
                    for column, field in zip(columns, ARROW_SCHEMA, strict=True)
                ],
                schema=ARROW_SCHEMA,
            )
