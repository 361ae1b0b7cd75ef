"""The two checksums of Kafka's files: CRC-32C (magic 2) and CRC-32 (magic 0 and 1).

Owns the choice of implementation, nothing else. Buffers are read in place, never copied, and
the `crc32c` package releases the GIL for large ones.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, cast
from zlib import crc32

if TYPE_CHECKING:  # at run time the records depend on this module, not the other way round
    from storage.records.layout import Buffer

__all__ = ["crc32", "crc32c", "crcmod_crc32c"]


def crcmod_crc32c() -> "Callable[[Buffer], int]":
    """CRC-32C by crcmod: some sixty times slower, but there is a build of it everywhere."""
    from crcmod.predefined import mkPredefinedCrcFun

    return cast("Callable[[Buffer], int]", mkPredefinedCrcFun("crc-32c"))


def _fastest_crc32c() -> "Callable[[Buffer], int]":
    try:
        from crc32c import crc32c as packaged_crc32c
    except ImportError:
        return crcmod_crc32c()
    return packaged_crc32c


crc32c: "Callable[[Buffer], int]" = _fastest_crc32c()
