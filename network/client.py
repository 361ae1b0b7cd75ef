"""An outbound connection to another broker: requests in, responses out, matched by their order.

Kafka answers the requests of one connection in the order in which they were sent, so a queue of
those that wait is all the bookkeeping there is. It knows no topics and never retries: a connection
that fails ends every request on it, and the caller decides what that means.
"""

import asyncio
import itertools
import ssl
from collections import deque
from contextlib import suppress
from types import TracebackType
from typing import Self

from network.frame import SIZE_PREFIX
from network.protocol import ProtocolError, decode_response, encode_request
from network.protocol.schema import Request, Response

MAX_RESPONSE_BYTES = 100 << 20


class ConnectionEnded(ConnectionError):
    """The connection is gone; requests that were on it have no answer."""


class BrokerConnection:
    """One connection to one broker."""

    def __init__(
        self, host: str, port: int, client_id: str, *, tls: ssl.SSLContext | None = None
    ) -> None:
        """With `tls` the connection is encrypted, and the other side's certificate checked."""
        self.host = host
        self.port = port
        self._tls = tls
        self._client_id = client_id
        self._correlation_ids = itertools.count()
        self._waiting: deque[_Waiting] = deque()
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def is_open(self) -> bool:
        return self._reading is not None and not self._reading.done()

    async def connect(self) -> None:
        reader, self._writer = await asyncio.open_connection(self.host, self.port, ssl=self._tls)
        self._reading = asyncio.create_task(
            self._read_responses(reader), name=f"responses-{self.host}:{self.port}"
        )

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading
        if self._writer is not None:
            self._writer.close()

    async def tell(self, message: Request, version: int) -> None:
        """Send a request that has no response."""
        await self._send(message, version, next(self._correlation_ids), None)

    async def ask(self, message: Request, version: int) -> Response:
        """Send a request and wait for its response. Raises ConnectionEnded, ProtocolError."""
        correlation_id = next(self._correlation_ids)
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        waiting = _Waiting(message.API_KEY, version, correlation_id, answer)
        await self._send(message, version, correlation_id, waiting)
        return await answer

    async def _send(
        self, message: Request, version: int, correlation_id: int, waiting: "_Waiting | None"
    ) -> None:
        if not self.is_open or self._writer is None:
            raise ConnectionEnded(f"not connected to {self.host}:{self.port}")
        parts = encode_request(message.API_KEY, version, correlation_id, message, self._client_id)
        if waiting is not None:
            self._waiting.append(waiting)
        self._writer.writelines(parts)
        await self._writer.drain()

    async def _read_responses(self, reader: asyncio.StreamReader) -> None:
        failure: Exception = ConnectionEnded(f"{self.host}:{self.port} closed the connection")
        try:
            while True:
                (size,) = SIZE_PREFIX.unpack(await reader.readexactly(SIZE_PREFIX.size))
                if not 0 <= size <= MAX_RESPONSE_BYTES:
                    raise ProtocolError(f"a response of {size} bytes is announced")
                self._deliver(memoryview(await reader.readexactly(size)))
        except (asyncio.IncompleteReadError, OSError):
            pass
        except ProtocolError as error:
            failure = error
        finally:
            self._fail_all(failure)

    def _deliver(self, frame: memoryview) -> None:
        if not self._waiting:
            raise ProtocolError("a response that nobody asked for")
        waiting = self._waiting[0]
        correlation_id, response = decode_response(waiting.api_key, waiting.version, frame)
        if correlation_id != waiting.correlation_id:
            raise ProtocolError(
                f"response {correlation_id} came where {waiting.correlation_id} was due"
            )
        self._waiting.popleft()
        if not waiting.answer.done():
            waiting.answer.set_result(response)

    def _fail_all(self, failure: Exception) -> None:
        if self._writer is not None:
            self._writer.close()
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.answer.done():
                waiting.answer.set_exception(failure)


class _Waiting:
    """A request whose response has not come yet."""

    __slots__ = ("answer", "api_key", "correlation_id", "version")

    def __init__(
        self,
        api_key: int,
        version: int,
        correlation_id: int,
        answer: "asyncio.Future[Response]",
    ) -> None:
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.answer = answer
