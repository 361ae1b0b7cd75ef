"""Servers and clients over real loopback sockets, for tests of the network room."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import IO, Any

from network.frame import SIZE_PREFIX
from network.request import Request
from network.request_channel import Handler
from network.socket_server import ListenerEndpoint, NetworkLimits, SocketServer

PLAIN = ListenerEndpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 0)


def framed(payload: bytes) -> bytes:
    return SIZE_PREFIX.pack(len(payload)) + payload


def echo(request: Request) -> None:
    request.respond([framed(bytes(request.frame))])


@asynccontextmanager
async def serving(
    handler: Handler,
    limits: NetworkLimits | None = None,
    endpoints: Sequence[ListenerEndpoint] = (PLAIN,),
    **names: Any,
) -> AsyncIterator[SocketServer]:
    server = SocketServer(endpoints, limits or NetworkLimits(), handler, **names)
    server.bind()
    server.start_processing()
    try:
        yield server
    finally:
        await server.stop()
        assert server.connection_count == 0
        assert server.quotas.total == 0
        pool = server.memory_pool
        assert pool is None or pool.available == pool.size


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(
        cls,
        server: SocketServer,
        listener: str = "PLAINTEXT",
        tls: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
    ) -> "Client":
        local = None if tls is not None or host == "127.0.0.1" else (host, 0)
        return cls(
            *await asyncio.open_connection(
                "127.0.0.1", server.ports[listener], ssl=tls, local_addr=local
            )
        )

    def send(self, *payloads: bytes) -> None:
        self.writer.write(b"".join(map(framed, payloads)))

    async def receive(self) -> bytes:
        (size,) = SIZE_PREFIX.unpack(await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    async def ask(self, payload: bytes) -> bytes:
        self.send(payload)
        return await self.receive()

    async def is_closed_by_server(self) -> bool:
        try:
            return await asyncio.wait_for(self.reader.read(1), 5) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self.writer.transport.abort()


@dataclass
class Region:
    file: IO[bytes]
    position: int
    length: int

    def __len__(self) -> int:
        return self.length


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that is bound to come true; the test's own limit ends it otherwise."""
    while not condition():
        await asyncio.sleep(0.002)


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(test(), 60)

    asyncio.run(bounded())
