"""Primitives that Numba lacks: loads and stores at places that are known to be good, and memcpy.

All work on arrays of bytes. Numba turns negative indices into ones from the end, and copies bytes
one by one; without both the record loop is several times faster (docs/analytics-internals.md).
Whoever calls these has checked the range.
"""

from typing import Any, TypeAlias

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing import signature
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

# Whatever kind of number Numba infers.
Number: TypeAlias = Any


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = make_array(array_type)(context, builder, array).data
    return cgutils.gep(builder, data, index)


def _byte_at(_typing: Any, data: Any, _index: Any) -> Any:
    """`data[index]` of an array of bytes, as a 64-bit integer."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        array, index = arguments
        byte = builder.load(_pointer(context, builder, data, array, index))
        return builder.zext(byte, ir.IntType(64))

    return signature(types.int64, data, types.int64), generate


def _copy_bytes(_typing: Any, source: Any, _at: Any, _length: Any, target: Any, _to: Any) -> Any:
    """`target[to : to + length] = source[at : at + length]`, which do not overlap."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        source_array, at, length, target_array, to = arguments
        cgutils.raw_memcpy(
            builder,
            _pointer(context, builder, target, target_array, to),
            _pointer(context, builder, source, source_array, at),
            length,
            1,
        )
        return context.get_dummy_value()

    number = types.int64
    return signature(types.void, source, number, number, target, number), generate


def _storing(bits: int) -> Any:
    def put(_typing: Any, target: Any, _at: Any, _value: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            array, at, value = arguments
            number = ir.IntType(bits)
            address = builder.bitcast(
                _pointer(context, builder, target, array, at), number.as_pointer()
            )
            builder.store(builder.trunc(value, number) if bits < 64 else value, address, align=1)
            return context.get_dummy_value()

        return signature(types.void, target, types.int64, types.int64), generate

    return intrinsic(put)


byte_at: Any = intrinsic(_byte_at)
copy_bytes: Any = intrinsic(_copy_bytes)
# Each writes a number in the machine's own byte order, as Arrow has it: put(target, at, value).
put_byte: Any = _storing(8)
put_int32: Any = _storing(32)
put_int64: Any = _storing(64)
