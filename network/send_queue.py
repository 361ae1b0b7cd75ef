"""What waits to be written to one socket: buffers gathered by sendmsg, file regions by sendfile.

A queue knows nothing of requests: parts go out in the order in which they were added, and what the
socket did not take stays for the next call.
"""

import os
import socket
from collections import deque
from collections.abc import Iterable
from typing import Protocol, TypeAlias

MAX_GATHERED_BUFFERS = 64
MAX_SENDFILE_BYTES = 8 << 20
MAX_BYTES_PER_TURN = 8 << 20
MORE_FOLLOWS: int = getattr(socket, "MSG_MORE", 0)

Buffer: TypeAlias = bytes | bytearray | memoryview


class OpenFile(Protocol):
    def fileno(self) -> int: ...


class FileRegion(Protocol):
    """Bytes of an open file that are to be sent without passing through Python."""

    @property
    def file(self) -> OpenFile: ...

    @property
    def position(self) -> int: ...

    def __len__(self) -> int: ...


Part: TypeAlias = Buffer | FileRegion


class TruncatedRegion(OSError):
    """A file became shorter than the region that was promised to the peer."""


class SendQueue:
    """Parts on their way to one socket."""

    __slots__ = ("_parts", "_region_sent", "pending_bytes")

    def __init__(self) -> None:
        self._parts: deque[Part] = deque()
        self._region_sent = 0
        self.pending_bytes = 0

    def add(self, parts: Iterable[Part]) -> None:
        for part in parts:
            size = len(part)
            if size:
                self._parts.append(part)
                self.pending_bytes += size

    def write_to(self, sock: socket.socket) -> bool:
        """Write until nothing is left (True); False when the socket takes no more, or has taken
        so much in this turn of the loop that it is the others' turn."""
        parts = self._parts
        enough = self.pending_bytes - MAX_BYTES_PER_TURN
        try:
            while parts:
                if self.pending_bytes <= enough:
                    return False
                first = parts[0]
                if isinstance(first, bytes | bytearray | memoryview):
                    self._send_buffers(sock)
                else:
                    self._send_region(sock, first)
        except (BlockingIOError, InterruptedError):
            return False
        return True

    def clear(self) -> None:
        self._parts.clear()
        self._region_sent = 0
        self.pending_bytes = 0

    def _send_buffers(self, sock: socket.socket) -> None:
        buffers: list[Buffer] = []
        flags = 0
        for part in self._parts:
            if not isinstance(part, bytes | bytearray | memoryview):
                flags = MORE_FOLLOWS
                break
            if len(buffers) == MAX_GATHERED_BUFFERS:
                break
            buffers.append(part)
        if len(buffers) == 1:
            sent = sock.send(buffers[0], flags)
        else:
            sent = sock.sendmsg(buffers, (), flags)
        self._drop_sent_buffers(sent)

    def _drop_sent_buffers(self, sent: int) -> None:
        self.pending_bytes -= sent
        parts = self._parts
        while sent:
            first = parts[0]
            assert isinstance(first, bytes | bytearray | memoryview)
            if sent < len(first):
                parts[0] = memoryview(first)[sent:]
                return
            sent -= len(first)
            parts.popleft()

    def _send_region(self, sock: socket.socket, region: FileRegion) -> None:
        remaining = len(region) - self._region_sent
        offset = region.position + self._region_sent
        count = min(remaining, MAX_SENDFILE_BYTES)
        sent = os.sendfile(sock.fileno(), region.file.fileno(), offset, count)
        if sent == 0:
            raise TruncatedRegion(f"{remaining} bytes at {offset} are no longer in the file")
        self.pending_bytes -= sent
        if sent == remaining:
            self._parts.popleft()
            self._region_sent = 0
        else:
            self._region_sent += sent
