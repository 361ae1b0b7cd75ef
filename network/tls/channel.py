"""A connection that speaks TLS on a non-blocking socket.

OpenSSL reads and writes the socket itself: nothing passes through buffers of ours on its way. What
it has decrypted and we have not taken yet is invisible to the loop, so whoever resumes reading
looks there first.
"""

import asyncio
import contextlib
import logging
import os
import socket
import ssl
from typing import Protocol

from network.channel import Channel, ChannelContext
from network.send_queue import MAX_BYTES_PER_TURN, Buffer, FileRegion, SendQueue, TruncatedRegion

logger = logging.getLogger(__name__)

CHUNK_BYTES = 64 << 10
BUFFERS = (bytes, bytearray, memoryview)


class WrapsSockets(Protocol):
    """Whoever has the certificates."""

    def wrap(self, sock: socket.socket) -> ssl.SSLSocket: ...


class TlsSendQueue(SendQueue):
    """Parts are encrypted in chunks of bounded size; regions of files are read chunk by chunk,
    so that a slow reader costs one chunk and not its response."""

    __slots__ = ("_chunk",)

    def __init__(self) -> None:
        super().__init__()
        self._chunk = memoryview(b"")

    def write_to(self, sock: socket.socket) -> bool:
        enough = self.pending_bytes - MAX_BYTES_PER_TURN
        try:
            while self.pending_bytes:
                if self.pending_bytes <= enough:
                    return False
                if not self._chunk:
                    self._chunk = self._next_chunk()
                # OpenSSL insists on seeing what it has not sent again.
                sent = sock.send(self._chunk)
                self._chunk = self._chunk[sent:]
                self.pending_bytes -= sent
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError, InterruptedError):
            return False
        return True

    def clear(self) -> None:
        super().clear()
        self._chunk = memoryview(b"")

    def _next_chunk(self) -> memoryview:
        first = self._parts[0]
        if isinstance(first, BUFFERS):
            return self._take_buffers(first)
        return self._read_region(first)

    def _take_buffers(self, first: Buffer) -> memoryview:
        """Small buffers are joined, so that they share records; a large one is cut."""
        if len(first) > CHUNK_BYTES:
            whole = memoryview(first)
            self._parts[0] = whole[CHUNK_BYTES:]
            return whole[:CHUNK_BYTES]
        joined = bytearray()
        while self._parts:
            part = self._parts[0]
            if not isinstance(part, BUFFERS) or len(joined) + len(part) > CHUNK_BYTES:
                break
            joined += part
            self._parts.popleft()
        return memoryview(joined)

    def _read_region(self, region: FileRegion) -> memoryview:
        remaining = len(region) - self._region_sent
        offset = region.position + self._region_sent
        data = os.pread(region.file.fileno(), min(remaining, CHUNK_BYTES), offset)
        if not data:
            raise TruncatedRegion(f"{remaining} bytes at {offset} are no longer in the file")
        self._region_sent += len(data)
        if len(data) == remaining:
            self._parts.popleft()
            self._region_sent = 0
        return memoryview(data)


class TlsChannel(Channel):
    """A client socket behind TLS."""

    __slots__ = ("_handshake_done", "_handshake_writes", "_tls")

    def __init__(
        self,
        sock: ssl.SSLSocket,
        address: str,
        context: ChannelContext,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(sock, address, context, loop)
        self._tls = sock
        self._handshake_done = False
        self._handshake_writes = False

    @property
    def peer_certificate(self) -> bytes | None:
        return self._tls.getpeercert(binary_form=True)

    def _make_send_queue(self) -> SendQueue:
        return TlsSendQueue()

    def close(self) -> None:
        if not self.closed and self._handshake_writes:
            self._handshake_writes = False
            self._loop.remove_writer(self._sock.fileno())
        super().close()

    def _close_socket(self) -> None:
        if self._handshake_done:
            with contextlib.suppress(OSError, ValueError):
                self._tls.unwrap()  # says goodbye if the socket takes it at once
        super()._close_socket()

    def _on_readable(self) -> None:
        if not self._handshake_done:
            self._shake_hands()
            return
        super()._on_readable()
        self._look_for_decrypted()

    def _shake_hands(self) -> None:
        self.last_active = self._loop.time()
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._watch_writable(False)
        except ssl.SSLWantWriteError:
            self._watch_writable(True)
        except OSError as error:
            self._context.counters.failed_handshakes += 1
            logger.info("Failed authentication with %s (SSL handshake failed): %s", self, error)
            self.close()
        else:
            self._watch_writable(False)
            self._handshake_done = True
            self._look_for_decrypted()

    def _watch_writable(self, wanted: bool) -> None:
        if wanted and not self._handshake_writes:
            self._loop.add_writer(self._sock.fileno(), self._shake_hands)
        elif not wanted and self._handshake_writes:
            self._loop.remove_writer(self._sock.fileno())
        self._handshake_writes = wanted

    def _receive(self) -> int:
        try:
            return super()._receive()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None

    def _peek(self) -> bytes:
        """At the encrypted stream: an empty answer means that the peer has left."""
        return socket.socket.recv(self._sock, 1, socket.MSG_PEEK)

    def _pump(self) -> None:
        super()._pump()
        self._look_for_decrypted()

    def _resume_reading(self) -> None:
        super()._resume_reading()
        self._look_for_decrypted()

    def _look_for_decrypted(self) -> None:
        """Come back to what OpenSSL holds: it makes no socket readable."""
        if self._handshake_done and not self.closed and not self._muted and self._tls.pending():
            self._loop.call_soon(self._read_decrypted)

    def _read_decrypted(self) -> None:
        if self._reading and not self.closed and self._tls.pending():
            self._on_readable()
