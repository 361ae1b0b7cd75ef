"""What can be wrong with record data, one class per answer that a client gets.

Owns the exceptions that reading, validating and converting records raise. Knows no wire error
codes: the broker maps these classes to codes in its one table.
"""

from collections.abc import Sequence
from typing import NamedTuple


class RecordFault(NamedTuple):
    """Why one record of a refused batch was refused (KIP-467)."""

    batch_index: int
    message: str


class RecordDataError(Exception):
    """Base of everything that is wrong with records; carries a message fit for a client."""


class CorruptRecordError(RecordDataError):
    """The bytes are damaged: sizes, magic or checksum do not hold."""


class InvalidRecordError(RecordDataError):
    """The bytes are intact, yet their content is refused; `faults` names the records if known."""

    def __init__(self, message: str, faults: Sequence[RecordFault] = ()) -> None:
        super().__init__(message)
        self.faults = tuple(faults)


class InvalidTimestampError(InvalidRecordError):
    """At least one record's timestamp is out of the allowed range or of the wrong type."""


class DecompressionError(InvalidRecordError):
    """Compressed records are damaged, or expand beyond all proportion."""


class RecordTooLargeError(RecordDataError):
    """A batch is larger than the topic's max.message.bytes."""


class UnsupportedForMessageFormatError(RecordDataError):
    """The records use what the topic's (or the client's) message format cannot express."""


class UnsupportedCodecError(RecordDataError):
    """The compression codec is unknown, or not allowed in this message format."""
