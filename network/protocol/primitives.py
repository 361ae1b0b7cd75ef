"""The small parts that compiled codecs call: varints, tagged fields, runs of integers, errors.

Everything here works on bytes or memoryviews and positions; it knows no message.
"""

from collections.abc import Callable
from struct import Struct as Layout
from typing import Any

from network.protocol.exceptions import EncodeError, ProtocolError

Unpack = Callable[[Any, int], tuple[Any, ...]]
Pack = Callable[..., bytes]

MAX_VARINT_BYTES = 5
# The varints of one byte, by their values.
ONE_BYTE = tuple(bytes((value,)) for value in range(128))
# Layouts of series are kept for lengths up to the one, and up to the other in number where
# several lengths go together. The others are rare and made anew.
LONGEST_KEPT_SERIES = 128
MOST_KEPT_LAYOUTS = 256


def read_uvarint(data: Any, pos: int) -> tuple[int, int]:
    """Read an unsigned varint; returns its value and the position behind it."""
    first = data[pos]
    return (first, pos + 1) if first < 0x80 else widen_uvarint(first, data, pos + 1)


def widen_uvarint(first: int, data: Any, pos: int, ahead: int = 0) -> tuple[int, int]:
    """Read the rest of an unsigned varint whose `first` byte has its high bit set.

    The rest begins at `pos + ahead`; the position returned is `pos` plus the bytes taken.
    """
    value = first & 0x7F
    for taken in range(1, MAX_VARINT_BYTES):
        byte = data[pos + ahead + taken - 1]
        value |= (byte & 0x7F) << (7 * taken)
        if byte < 0x80:
            return value, pos + taken
    raise ProtocolError(f"a varint of more than {MAX_VARINT_BYTES} bytes")


def write_uvarint(value: int) -> bytes:
    """The bytes of an unsigned varint."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def skip_tagged_fields(count: int, data: Any, pos: int) -> int:
    """Pass over tagged fields of which none is known; `count` is the byte just before `pos`."""
    if count > 0x7F:
        count, pos = widen_uvarint(count, data, pos)
    for _ in range(count):
        _, pos = read_uvarint(data, pos)
        size, pos = read_uvarint(data, pos)
        pos += size
    return pos


class SeriesReaders(dict[int, Unpack]):
    """For each length of a series of values of one type, what unpacks it and what follows it.

    Keys are lengths plus `bias`, which is 1 for counts as compact arrays have them.
    """

    def __init__(self, code: str, suffix: str, bias: int) -> None:
        self.code = code
        self.suffix = suffix
        self.bias = bias

    def __missing__(self, key: int) -> Unpack:
        length = key - self.bias
        if length < 0:
            raise ProtocolError(f"an array of {length} elements may not be null")
        unpack = Layout(f">{length}{self.code}{self.suffix}").unpack_from
        if length <= LONGEST_KEPT_SERIES:
            self[key] = unpack
        return unpack


class SeriesPackers(dict[Any, Pack]):
    """What packs values among which stand series of values, for each length of the series.

    `codes` has the code of each value, that of a series behind a star. Keys are the lengths of
    the series plus `bias`, in a tuple if there are several.
    """

    def __init__(self, codes: list[str], bias: int) -> None:
        self.codes = codes
        self.bias = bias

    def __missing__(self, key: Any) -> Pack:
        lengths = iter(key if isinstance(key, tuple) else (key,))
        layout = ">"
        for code in self.codes:
            layout += f"{next(lengths) - self.bias}{code[1:]}" if code[0] == "*" else code
        pack = Layout(layout).pack
        if len(self) < MOST_KEPT_LAYOUTS:
            self[key] = pack
        return pack


def sixteen_bytes(value: bytes) -> bytes:
    """Refuse what is not a uuid: `struct` would pad or cut it silently."""
    if len(value) != 16:
        raise EncodeError(f"a uuid has 16 bytes, not {len(value)}")
    return value


def bad_length(field: str, length: int) -> ProtocolError:
    """A negative length, or the null that a compact length of zero means."""
    return ProtocolError(f"{field} has length {length}, and may not be null")


def bad_count(field: str, count: int, left: int) -> ProtocolError:
    """More elements than the rest of the frame can hold, or fewer than none."""
    return ProtocolError(f"{field} counts {count} elements in the {left} bytes that are left")


def bad_tag_size(field: str, declared: int, read: int) -> ProtocolError:
    """A tagged field that is shorter or longer than it says."""
    return ProtocolError(f"tagged field {field} declares {declared} bytes but has {read}")


def bad_end(pos: int, size: int) -> ProtocolError:
    """The message ends behind the end of its frame."""
    return ProtocolError(f"the frame ends {pos - size} bytes early")


def absent_field(field: str, version: int, value: object) -> EncodeError:
    """A value that would be lost, because the version has no such field."""
    return EncodeError(f"{field} is {value!r:.100}, but version {version} cannot carry it")
