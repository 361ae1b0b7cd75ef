"""Ways to read and write sockets on the loop, beside each other: what a request and a GB cost.

Each way is the least server that cuts frames and answers them, in a process of its own: a plain
non-blocking socket that the loop watches, asyncio's buffered protocol, and for TLS a non-blocking
SSL socket, OpenSSL on memory buffers, and the loop's own TLS. Prints the server's CPU time.
Run: python -m benchmarks.transports [--requests N] [--megabytes N]
"""

import argparse
import asyncio
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from network.frame import SIZE_PREFIX, FrameReader
from tests.support.certificates import TlsFiles, make_tls_files

SCRATCH_BYTES = 128 << 10
CHUNK_BYTES = 64 << 10
MUCH = 1 << 30
LARGE_FRAME = 1 << 20
SMALL_FRAME = 160
ANSWER = SIZE_PREFIX.pack(60) + bytes(60)
LARGE_ANSWER = SIZE_PREFIX.pack(LARGE_FRAME) + bytes(LARGE_FRAME)
DEPTH = 32
ROUNDS = 3


class Answering:
    """Cuts frames, and says what to send; a frame that begins with G wants a large answer."""

    def __init__(self) -> None:
        self.reader = FrameReader(1 << 30)

    def answers(self) -> list[bytes]:
        frames = self.reader.frames
        answers = [LARGE_ANSWER if frame[0] == ord("G") else ANSWER for frame in frames]
        frames.clear()
        return answers


class WatchedSocket(Answering):
    """A non-blocking socket, plain or TLS, read and written when the loop says so."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        self._sock = sock
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._outgoing = memoryview(b"")
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(sock.fileno(), self._readable)
        self._writing = False
        self._most = CHUNK_BYTES if isinstance(sock, ssl.SSLSocket) else MUCH

    def _readable(self) -> None:
        while True:
            target = self.reader.direct_target()
            try:
                count = self._sock.recv_into(self._scratch if target is None else target)
            except (BlockingIOError, ssl.SSLWantReadError):
                return
            if not count:
                self._loop.stop()
                return
            if target is None:
                self.reader.feed(self._scratch[:count])
            else:
                self.reader.received_directly(count)
            self.send(b"".join(self.answers()))
            if not isinstance(self._sock, ssl.SSLSocket) or not self._sock.pending():
                return

    def send(self, data: bytes) -> None:
        self._outgoing = memoryview(bytes(self._outgoing) + data if self._outgoing else data)
        self._write()

    def _write(self) -> None:
        try:
            while self._outgoing:
                sent = self._sock.send(self._outgoing[: self._most])
                self._outgoing = self._outgoing[sent:]
        except (BlockingIOError, ssl.SSLWantWriteError):
            if not self._writing:
                self._writing = True
                self._loop.add_writer(self._sock.fileno(), self._write)
            return
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._sock.fileno())


class Buffered(Answering, asyncio.BufferedProtocol):
    """What the loop's own transports offer; with TLS they decrypt for us."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one by its methods
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))

    def get_buffer(self, _sizehint: int) -> memoryview:
        return self._scratch  # uvloop keeps hold of it during the call: no frame can be its target

    def buffer_updated(self, count: int) -> None:
        self.reader.feed(self._scratch[:count])
        answers = self.answers()
        if answers:
            self._transport.write(b"".join(answers))

    def connection_lost(self, _error: Exception | None) -> None:
        asyncio.get_running_loop().stop()


class MemoryBuffers(WatchedSocket):
    """TLS by OpenSSL on buffers in memory; the socket itself is plain."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        super().__init__(sock)
        self._incoming, self._encrypted = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._encrypted, server_side=True)
        self._plain = memoryview(bytearray(SCRATCH_BYTES))
        self._shaken = False

    def _readable(self) -> None:
        try:
            count = self._sock.recv_into(self._scratch)
        except BlockingIOError:
            return
        if not count:
            self._loop.stop()
            return
        self._incoming.write(self._scratch[:count])
        if not self._shaken:
            self._shake_hands()
        if self._shaken:
            self._take_decrypted()
        self.send(self._encrypted.read())

    def _shake_hands(self) -> None:
        try:
            self._tls.do_handshake()
            self._shaken = True
        except ssl.SSLWantReadError:
            pass

    def _take_decrypted(self) -> None:
        try:
            while True:
                count = cast("int", self._tls.read(len(self._plain), self._plain))
                self.reader.feed(self._plain[:count])
        except ssl.SSLWantReadError:
            pass
        answers = b"".join(self.answers())
        if answers:
            self._tls.write(answers)


def serve(variant: str, listener: socket.socket, directory: Path) -> None:
    import uvloop

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if "tls" in variant:
        context.load_cert_chain(directory / "server.pem")
    connection, _peer = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if variant == "tls, non-blocking socket":
        connection = context.wrap_socket(connection, server_side=True)
    connection.setblocking(False)
    loop = uvloop.new_event_loop()

    async def start() -> None:
        if variant == "tls, memory buffers":
            MemoryBuffers(connection, context)
        elif variant.endswith("non-blocking socket"):
            WatchedSocket(connection)
        else:
            await loop.connect_accepted_socket(
                Buffered, connection, ssl=context if "tls" in variant else None
            )

    task = loop.create_task(start())
    loop.run_forever()
    task.cancel()


VARIANTS = (
    "plain, non-blocking socket",
    "plain, buffered protocol",
    "tls, non-blocking socket",
    "tls, memory buffers",
    "tls, buffered protocol",
)


@contextmanager
def running(variant: str, files: TlsFiles) -> Iterator[tuple[socket.socket, int]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        command = [sys.executable, "-m", "benchmarks.transports", "--serve", variant]
        command += [str(listener.fileno()), str(files.server.parent)]
        child = subprocess.Popen(command, pass_fds=[listener.fileno()])
        try:
            sock = socket.create_connection(listener.getsockname())
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if "tls" in variant:
                context = ssl.create_default_context(cafile=str(files.authority))
                sock = context.wrap_socket(sock, server_hostname="localhost")
            with sock:
                yield sock, child.pid
        finally:
            child.kill()
            child.wait()


def receive(sock: socket.socket, count: int, scratch: bytearray) -> None:
    while count:
        count -= sock.recv_into(scratch, min(count, len(scratch)))


def small_requests(sock: socket.socket, number: int, depth: int) -> None:
    scratch = bytearray(SCRATCH_BYTES)
    burst = (SIZE_PREFIX.pack(SMALL_FRAME) + bytes(SMALL_FRAME)) * depth
    for _ in range(number // depth):
        sock.sendall(burst)
        receive(sock, len(ANSWER) * depth, scratch)


def bulk_in(sock: socket.socket, megabytes: int) -> None:
    scratch = bytearray(SCRATCH_BYTES)
    frame = SIZE_PREFIX.pack(LARGE_FRAME) + bytes(LARGE_FRAME)
    for _ in range(megabytes):
        sock.sendall(frame)
        receive(sock, len(ANSWER), scratch)


def bulk_out(sock: socket.socket, megabytes: int) -> None:
    scratch = bytearray(1 << 20)
    for _ in range(megabytes):
        sock.sendall(SIZE_PREFIX.pack(1) + b"G")
        receive(sock, len(LARGE_ANSWER), scratch)


def cpu_of(pid: int, work: Callable[[], None]) -> float:
    before = cpu_seconds(pid)
    work()
    return cpu_seconds(pid) - before


def cpu_seconds(pid: int) -> float:
    """Of the only thread, finer than the usual hundredths of a second."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def measure(variant: str, files: TlsFiles, requests: int, megabytes: int) -> list[float]:
    with running(variant, files) as (sock, pid):
        small_requests(sock, requests // 10, DEPTH)
        works: list[tuple[Callable[[], None], float]] = [
            (lambda: small_requests(sock, requests // 4, 1), 4e6 / requests),
            (lambda: small_requests(sock, requests, DEPTH), 1e6 / requests),
            (lambda: bulk_in(sock, megabytes), 1000 / megabytes),
            (lambda: bulk_out(sock, megabytes), 1000 / megabytes),
        ]
        return [min(cpu_of(pid, work) for _ in range(ROUNDS)) * scale for work, scale in works]


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        _, _, variant, descriptor, directory = sys.argv
        serve(variant, socket.socket(fileno=int(descriptor)), Path(directory))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=40_000)
    parser.add_argument("--megabytes", type=int, default=300)
    options = parser.parse_args()
    print(
        f"{'server CPU':30} {'alone, us':>10} {f'{DEPTH} deep, us':>12} {'in, s/GB':>9} {'out':>6}"
    )
    with tempfile.TemporaryDirectory() as directory:
        files = make_tls_files(Path(directory))
        base: dict[str, list[float]] = {}
        for variant in VARIANTS:
            figures = measure(variant, files, options.requests, options.megabytes)
            first = base.setdefault(variant.partition(",")[0], figures)
            ratios = " ".join(
                f"{one / other:.2f}x" for one, other in zip(figures, first, strict=True)
            )
            print(
                f"{variant:30} {figures[0]:10.1f} {figures[1]:12.2f} {figures[2]:9.2f}"
                f" {figures[3]:6.2f}   {ratios}",
                flush=True,
            )


if __name__ == "__main__":
    main()
