"""The transactions that were aborted in a segment (`.txnindex`).

Owns the file and the search. The file exists only where a transaction was aborted. Must not know
how transactions come to their end.

Entry, big endian:

     0           2               10               18              26                   34
    +-----------+---------------+----------------+---------------+--------------------+
    | version 2 | producer id 8 | first offset 8 | last offset 8 | last stable offset |
    | (0)       |               |                | (its marker)  | 8                  |
    +-----------+---------------+----------------+---------------+--------------------+
"""

import os
from struct import Struct
from typing import Final, NamedTuple

from storage.environment import Environment
from storage.errors import CorruptIndexError

_ENTRY: Final = Struct(">hqqqq")
_VERSION: Final = 0


class AbortedTransaction(NamedTuple):
    """A run of one producer's records that readers of committed data skip."""

    producer_id: int
    first_offset: int
    last_offset: int
    # Up to here everything was decided when the transaction was aborted: transactions that end
    # later begin at or after it, so that a search may stop.
    last_stable_offset: int


def decode_entries(data: bytes, path: str) -> list[AbortedTransaction]:
    """The entries of an index file; a torn one at its end is left out."""
    entries: list[AbortedTransaction] = []
    for version, *fields in _ENTRY.iter_unpack(data[: len(data) - len(data) % _ENTRY.size]):
        if version > _VERSION:
            raise CorruptIndexError(f"{path} has an entry of version {version}")
        entries.append(AbortedTransaction(*fields))
    return entries


class TxnIndex:
    """Aborted transactions in the order of their markers."""

    __slots__ = ("_entries", "_environment", "_file_size", "_size", "base_offset", "path")

    def __init__(self, environment: Environment, path: str, base_offset: int, size: int) -> None:
        """Take an existing file of `size` bytes, or none (0); it is read when it is needed."""
        self._environment = environment
        self.path = path
        self.base_offset = base_offset
        self._size = size
        self._file_size = size
        self._entries: list[AbortedTransaction] | None = None if size else []

    @property
    def exists(self) -> bool:
        return self._size > 0

    @property
    def size_in_bytes(self) -> int:
        return self._size

    @property
    def entries(self) -> list[AbortedTransaction]:
        if self._entries is None:
            self._entries = self._read()
        return self._entries

    def append(self, aborted: AbortedTransaction) -> None:
        """Add a transaction; its marker lies after those of all others."""
        entries = self.entries
        if entries and entries[-1].last_offset >= aborted.last_offset:
            raise CorruptIndexError(
                f"{aborted} does not follow {entries[-1]} in {self.path}: its order is broken"
            )
        files = self._environment.files
        descriptor = files.open(self.path, os.O_RDWR | os.O_CREAT)
        data = _ENTRY.pack(_VERSION, *aborted)
        written = files.pwrite(descriptor, data, self._size)
        if written != len(data):
            files.truncate(descriptor, self._size)
            raise OSError(f"Only {written} of {len(data)} bytes fit into {self.path}")
        self._size += len(data)
        self._file_size = max(self._file_size, self._size)
        entries.append(aborted)

    def search(self, offset: int, end_offset: int) -> tuple[list[AbortedTransaction], bool]:
        """Transactions with records from `offset` to `end_offset`; whether these are all of them.

        If not, the following segments' indexes may have more.
        """
        found: list[AbortedTransaction] = []
        for aborted in self.entries:
            if aborted.last_offset >= offset and aborted.first_offset < end_offset:
                found.append(aborted)
            if aborted.last_stable_offset >= end_offset:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions whose marker lies at or after an offset."""
        entries = self.entries
        kept = [aborted for aborted in entries if aborted.last_offset < offset]
        if len(kept) < len(entries):
            self._resize(len(kept) * _ENTRY.size)
            self._entries = kept

    def reset(self) -> None:
        """Drop all transactions; the file keeps its blocks until `trim`: the disk may be full."""
        self._size = 0
        self._entries = []

    def trim(self) -> None:
        """Cut the file to its entries."""
        if self._file_size > self._size:
            self._resize(self._size)

    def check(self) -> None:
        """Refuse an index that cannot belong to its segment."""
        for aborted in self.entries:
            if aborted.last_offset < self.base_offset:
                raise CorruptIndexError(f"{self.path} names offsets before its segment")

    def sync(self) -> None:
        """Bring the entries to the disk; may run in a thread."""
        if self.exists:
            files = self._environment.files
            files.sync(files.open(self.path, os.O_RDWR))

    def _resize(self, size: int) -> None:
        files = self._environment.files
        files.truncate(files.open(self.path, os.O_RDWR), size)
        self._size = self._file_size = size

    def _read(self) -> list[AbortedTransaction]:
        entries = decode_entries(self._environment.files.read_whole(self.path), self.path)
        self._size = len(entries) * _ENTRY.size
        return entries
