"""The memory of one Arrow batch of records, and the batch that is made of it without a copy.

Owns the columns of the record table, how large a batch may become, and how its buffers lie in one
block. The columns are those of Spark's Kafka source, in names, order and types.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from analytics.decoding.record_kernel import (
    PROGRESS_FIELDS,
    Block,
    Capacity,
    Part,
    Progress,
)

_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
_HEADER: Final = pa.struct([("key", pa.string()), ("value", pa.binary())])

ARROW_TYPES: Final = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": _TIMESTAMP,
    "timestampType": pa.int32(),
    "headers": pa.list_(pa.field("element", _HEADER)),
}

_ALIGNMENT: Final = 64
_OFFSET_BYTES: Final = 4


class Capacities:
    """How much one Arrow batch may hold: a cap in rows and one in bytes."""

    def __init__(self, rows: int, data_bytes: int) -> None:
        self.amounts = np.zeros(len(Capacity), np.int64)
        self.amounts[Capacity.ROWS] = rows
        self.amounts[Capacity.KEY_BYTES] = data_bytes // 2
        self.amounts[Capacity.VALUE_BYTES] = data_bytes
        self.amounts[Capacity.HEADERS] = 2 * rows
        self.amounts[Capacity.HEADER_KEY_BYTES] = data_bytes // 4
        self.amounts[Capacity.HEADER_VALUE_BYTES] = data_bytes // 4
        np.maximum(self.amounts, 1, out=self.amounts)  # twice nothing is still nothing

    def doubled(self) -> None:
        """Make room for a record that is larger than all that a batch may hold."""
        self.amounts[Capacity.KEY_BYTES :] *= 2


class RecordBlock:
    """One Arrow batch in the making."""

    def __init__(self, capacities: Capacities, names: Sequence[str]) -> None:
        self._capacity = capacities.amounts.copy()
        sizes = self._sizes(names)
        starts = np.zeros(len(Part), np.int64)
        starts[1:] = np.cumsum(sizes)[:-1]
        self._buffer = pa.allocate_buffer(int(sizes.sum()))
        memory = np.frombuffer(self._buffer, np.uint8)
        for part in (
            Part.KEY_BITMAP, Part.VALUE_BITMAP, Part.HEADERS_BITMAP, Part.HEADER_VALUE_BITMAP,
        ):  # fmt: skip
            memory[starts[part] : starts[part] + sizes[part]] = 0
        for part in (
            Part.KEY_ENDS, Part.VALUE_ENDS, Part.HEADERS_ENDS, Part.HEADER_KEY_ENDS,
            Part.HEADER_VALUE_ENDS,
        ):  # fmt: skip
            memory[starts[part] : starts[part] + min(sizes[part], _OFFSET_BYTES)] = 0
        self.block = Block(memory, starts, self._capacity)
        self.progress = np.zeros(PROGRESS_FIELDS, np.int64)

    def _sizes(self, names: Sequence[str]) -> Any:
        """The bytes of each part; a column that is not wanted has none."""
        rows, key_bytes, value_bytes, headers, header_keys, header_values = self._capacity
        sizes = np.zeros(len(Part), np.int64)
        sizes[Part.OFFSET] = sizes[Part.TIMESTAMP] = rows * 8
        sizes[Part.TIMESTAMP_TYPE] = rows * 4
        row_ends, row_bits = (rows + 1) * _OFFSET_BYTES, rows // 8 + 1
        if "key" in names:
            sizes[Part.KEY_BITMAP], sizes[Part.KEY_ENDS] = row_bits, row_ends
            sizes[Part.KEY_DATA] = key_bytes
        if "value" in names:
            sizes[Part.VALUE_BITMAP], sizes[Part.VALUE_ENDS] = row_bits, row_ends
            sizes[Part.VALUE_DATA] = value_bytes
        if "headers" in names:
            sizes[Part.HEADERS_BITMAP], sizes[Part.HEADERS_ENDS] = row_bits, row_ends
            ends = (headers + 1) * _OFFSET_BYTES
            sizes[Part.HEADER_KEY_ENDS] = sizes[Part.HEADER_VALUE_ENDS] = ends
            sizes[Part.HEADER_VALUE_BITMAP] = headers // 8 + 1
            sizes[Part.HEADER_KEY_DATA] = header_keys
            sizes[Part.HEADER_VALUE_DATA] = header_values
        return -(-sizes // _ALIGNMENT) * _ALIGNMENT

    @property
    def rows(self) -> int:
        return int(self.progress[Progress.ROWS])

    def _slice(self, part: Part, length: int) -> pa.Buffer:
        return self._buffer.slice(int(self.block.starts[part]), int(length))

    def _bitmap(self, part: Part, nulls: Progress, count: int) -> pa.Buffer | None:
        return self._slice(part, count // 8 + 1) if self.progress[nulls] else None

    def column(self, name: str) -> pa.Array:
        """One of the columns that differ from row to row."""
        rows = self.rows
        if name == "offset":
            return self._numbers(name, Part.OFFSET, 8)
        if name == "timestamp":
            return self._numbers(name, Part.TIMESTAMP, 8)
        if name == "timestampType":
            return self._numbers(name, Part.TIMESTAMP_TYPE, 4)
        if name == "key":
            bitmap = self._bitmap(Part.KEY_BITMAP, Progress.NULL_KEYS, rows)
            return self._binary(
                pa.binary(), rows, bitmap, Part.KEY_ENDS, Part.KEY_DATA, Progress.KEY_BYTES
            )
        if name == "value":
            bitmap = self._bitmap(Part.VALUE_BITMAP, Progress.NULL_VALUES, rows)
            return self._binary(
                pa.binary(), rows, bitmap, Part.VALUE_ENDS, Part.VALUE_DATA, Progress.VALUE_BYTES
            )
        return self._headers()

    def _numbers(self, name: str, part: Part, width: int) -> pa.Array:
        data = self._slice(part, self.rows * width)
        return pa.Array.from_buffers(ARROW_TYPES[name], self.rows, [None, data], 0)

    def _binary(
        self, kind: Any, count: int, bitmap: Any, ends: Part, data: Part, filled: Progress
    ) -> pa.Array:
        buffers = [
            bitmap,
            self._slice(ends, (count + 1) * _OFFSET_BYTES),
            self._slice(data, self.progress[filled]),
        ]
        return pa.Array.from_buffers(kind, count, buffers, 0 if bitmap is None else -1)

    def _headers(self) -> pa.Array:
        count = int(self.progress[Progress.HEADERS])
        keys = self._binary(
            pa.string(), count, None, Part.HEADER_KEY_ENDS, Part.HEADER_KEY_DATA,
            Progress.HEADER_KEY_BYTES,
        )  # fmt: skip
        if self.progress[Progress.HAS_WIDE_HEADER_KEY]:
            keys = _as_text(keys)
        bitmap = self._bitmap(Part.HEADER_VALUE_BITMAP, Progress.NULL_HEADER_VALUES, count)
        values = self._binary(
            pa.binary(), count, bitmap, Part.HEADER_VALUE_ENDS, Part.HEADER_VALUE_DATA,
            Progress.HEADER_VALUE_BYTES,
        )  # fmt: skip
        elements = pa.StructArray.from_arrays([keys, values], fields=list(_HEADER))
        bitmap = self._bitmap(Part.HEADERS_BITMAP, Progress.NULL_HEADERS, self.rows)
        ends = self._slice(Part.HEADERS_ENDS, (self.rows + 1) * _OFFSET_BYTES)
        return pa.Array.from_buffers(
            ARROW_TYPES["headers"], self.rows, [bitmap, ends], -1, children=[elements]
        )


def _as_text(keys: pa.Array) -> pa.Array:
    """Header keys that are no UTF-8 are read as Java's clients read them: with marks instead."""
    try:
        keys.validate(full=True)
    except pa.ArrowInvalid:
        raw = keys.cast(pa.binary(), safe=False).to_pylist()
        return pa.array([key.decode(errors="replace") for key in raw], pa.string())
    return keys
