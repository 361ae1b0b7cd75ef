"""Writing messages of magic 0 and 1, for topics and clients that still speak these formats.

Owns their assembly, in a compressed wrapper where a codec is asked for. Offsets and timestamps
are written as the caller gives them; must not know logs, rules or settings.
"""

from storage.records.compression import compress
from storage.records.errors import UnsupportedCodecError
from storage.records.layout import (
    LOG_APPEND_TIME_FLAG,
    MAGIC_1,
    NO_TIMESTAMP,
    Codec,
)
from storage.records.legacy import encode_message


class LegacyBuilder:
    """Collects records and builds messages of magic 0 or 1, in one wrapper if compressed."""

    __slots__ = (
        "_encoded",
        "_max_timestamp",
        "base_offset",
        "codec",
        "last_offset",
        "log_append_time",
        "magic",
        "record_count",
        "size_in_bytes",
    )

    def __init__(
        self,
        magic: int,
        *,
        base_offset: int,
        codec: Codec = Codec.NONE,
        log_append_time: int | None = None,
    ) -> None:
        if codec is Codec.ZSTD:
            raise UnsupportedCodecError(f"Messages of magic {magic} cannot use zstd")
        self.magic = magic
        self.base_offset = base_offset
        self.codec = codec
        self.log_append_time = log_append_time
        self.last_offset = base_offset - 1
        self.record_count = 0
        self.size_in_bytes = 0
        self._max_timestamp = NO_TIMESTAMP
        self._encoded: list[bytes] = []

    @property
    def _type_flag(self) -> int:
        is_flagged = self.magic == MAGIC_1 and self.log_append_time is not None
        return LOG_APPEND_TIME_FLAG if is_flagged else 0

    def append(self, timestamp: int, key: bytes | None, value: bytes | None, offset: int) -> None:
        """Add a message; headers do not exist in these formats."""
        if offset <= self.last_offset:
            raise ValueError(f"Offset {offset} cannot follow offset {self.last_offset}")
        if self.log_append_time is not None:
            timestamp = self.log_append_time
        self._max_timestamp = max(self._max_timestamp, timestamp)
        has_relative_offsets = self.magic == MAGIC_1 and self.codec is not Codec.NONE
        encoded = encode_message(
            self.magic,
            offset - self.base_offset if has_relative_offsets else offset,
            timestamp,
            key,
            value,
            self._type_flag,
        )
        self._encoded.append(encoded)
        self.last_offset = offset
        self.record_count += 1
        self.size_in_bytes += len(encoded)

    def build(self) -> bytearray:
        """The messages one after another, or the wrapper that holds them."""
        messages = b"".join(self._encoded)
        if self.codec is Codec.NONE or not messages:
            return bytearray(messages)
        return bytearray(
            encode_message(
                self.magic,
                self.last_offset,
                self._max_timestamp,
                None,
                compress(self.codec, messages, self.magic),
                self._type_flag | self.codec,
            )
        )
