"""Record keys and values that begin with their version, as the coordinators' topics hold them.

Owns the two bytes in front and what is wrong with a record; the fields behind them are declared
as messages where they belong. Must not know groups, transactions or the running broker.

     0           2
    +-----------+---------------------------+
    | version 2 | fields of that version ...|
    +-----------+---------------------------+
"""

from struct import Struct
from typing import Final, TypeVar

from network.protocol.codec import decode_message, encode_message
from network.protocol.exceptions import ProtocolError
from network.protocol.schema import Message

_VERSION: Final = Struct(">h")

M = TypeVar("M", bound=Message)


class MalformedRecordError(ValueError):
    """A key or value does not follow its format."""


class UnknownRecordVersionError(MalformedRecordError):
    """A key or value has a version that is not known here; a newer broker may have written it."""


def encode_versioned(message: Message, version: int) -> bytes:
    """The bytes of a key or value; `EncodeError` where the version cannot carry it."""
    if version not in message.VERSIONS:
        raise UnknownRecordVersionError(f"{type(message).__name__} has no version {version}")
    return b"".join((_VERSION.pack(version), *encode_message(message, version)))


def version_of(data: bytes) -> int:
    """The version of a key or value."""
    if len(data) < _VERSION.size:
        raise MalformedRecordError(f"{len(data)} bytes are too few for a version")
    version: int = _VERSION.unpack_from(data)[0]
    return version


def decode_versioned(message: type[M], data: bytes, known_version: int | None = None) -> M:
    """The fields of a key or value, read as `known_version` if it is given."""
    version = version_of(data) if known_version is None else known_version
    if version not in message.VERSIONS:
        raise UnknownRecordVersionError(f"{message.__name__} has no version {version}")
    try:
        return decode_message(message, version, memoryview(data), _VERSION.size)
    except ProtocolError as error:
        raise MalformedRecordError(str(error)) from error
