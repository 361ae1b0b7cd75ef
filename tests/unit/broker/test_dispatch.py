"""The dispatcher over a real socket server: every request is answered, parked or closes."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from broker import dispatch
from broker.dispatch import Dispatcher, RequestContext, Verdict, handles
from broker.purgatory import DelayedOperation, Parked, Purgatory
from broker.services import Services
from broker.timing_wheel import TimingWheel
from network.frame import SIZE_PREFIX
from network.protocol import ApiKey, ErrorCode, decode_response, encode_request
from network.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from network.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from network.request import Request
from network.socket_server import ListenerEndpoint, NetworkLimits, SocketServer

NO_SERVICES = cast("Services", object())


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, version: int, message: Any, correlation_id: int = 7) -> None:
        parts = encode_request(message.API_KEY, version, correlation_id, message, "tester")
        self.writer.write(b"".join(parts))

    async def receive(self, api_key: ApiKey, version: int) -> tuple[int, Any]:
        (size,) = SIZE_PREFIX.unpack(await self.reader.readexactly(4))
        frame = await self.reader.readexactly(size)
        return decode_response(api_key, version, memoryview(frame))

    async def heartbeat(self, group: str) -> HeartbeatResponse:
        self.send(3, HeartbeatRequest(group_id=group))
        _, response = await self.receive(ApiKey.HEARTBEAT, 3)
        assert isinstance(response, HeartbeatResponse)
        return response

    async def is_closed(self) -> bool:
        return await asyncio.wait_for(self.reader.read(), 10) == b""


@asynccontextmanager
async def connected() -> AsyncIterator[Connection]:
    endpoint = ListenerEndpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 0)
    dispatcher = Dispatcher()
    dispatcher.serve(NO_SERVICES)
    server = SocketServer([endpoint], NetworkLimits(), dispatcher)
    server.bind()
    server.start_processing()
    try:
        yield Connection(*await asyncio.open_connection("127.0.0.1", server.ports["PLAINTEXT"]))
    finally:
        await server.stop()


class Late(DelayedOperation[HeartbeatResponse]):
    def try_result(self) -> HeartbeatResponse | None:
        return None

    def expired_result(self) -> HeartbeatResponse:
        return HeartbeatResponse(error_code=ErrorCode.REQUEST_TIMED_OUT)


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heartbeat stands for any API; what it does depends on the group's name."""
    monkeypatch.setattr(dispatch, "REGISTRY", {})

    def error(_request: Any, code: ErrorCode) -> HeartbeatResponse:
        return HeartbeatResponse(error_code=code)

    async def later() -> HeartbeatResponse:
        await asyncio.sleep(0)
        return HeartbeatResponse(throttle_time_ms=2)

    async def fail_later() -> HeartbeatResponse:
        await asyncio.sleep(0)
        raise ValueError("a bug that shows late")

    async def park_later() -> Parked[HeartbeatResponse]:
        await asyncio.sleep(0)
        return Purgatory[HeartbeatResponse](TimingWheel()).park(Late(), ["key"], 0.01)

    @handles(ApiKey.HEARTBEAT, versions=(0, 3), on_error=error)
    def heartbeat(_services: Services, _context: RequestContext, request: HeartbeatRequest) -> Any:
        outcomes: dict[str, Callable[[], Any]] = {
            "now": lambda: HeartbeatResponse(throttle_time_ms=1),
            "later": later,
            "fail": lambda: 1 // 0,
            "fail later": fail_later,
            "park": lambda: Purgatory[HeartbeatResponse](TimingWheel()).park(Late(), ["key"], 0.01),
            "park later": park_later,
            "silent": lambda: Verdict.NO_RESPONSE,
            "close": lambda: Verdict.CLOSE_CONNECTION,
        }
        return outcomes[request.group_id]()

    @handles(ApiKey.API_VERSIONS, versions=(0, 3), on_error=error)
    def api_versions(
        _services: Services, _context: RequestContext, _request: ApiVersionsRequest
    ) -> ApiVersionsResponse:
        return ApiVersionsResponse(api_keys=dispatch.served_versions())


def run(test: Callable[[Connection], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with connected() as connection:
            await asyncio.wait_for(test(connection), 30)

    asyncio.run(bounded())


def test_plain_and_async_handlers_are_answered() -> None:
    async def scenario(connection: Connection) -> None:
        assert (await connection.heartbeat("now")).throttle_time_ms == 1
        assert (await connection.heartbeat("later")).throttle_time_ms == 2

    run(scenario)


@pytest.mark.parametrize("group", ["park", "park later"])
def test_parked_request_is_answered_when_it_is_done(group: str) -> None:
    async def scenario(connection: Connection) -> None:
        response = await connection.heartbeat(group)
        assert response.error_code == ErrorCode.REQUEST_TIMED_OUT

    run(scenario)


def test_answered_requests_are_gone_without_the_garbage_collector() -> None:
    async def scenario(connection: Connection) -> None:
        gc.collect()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            for group in ("now", "park"):
                await connection.heartbeat(group)
            gc.collect()
            left = [one for one in gc.garbage if isinstance(one, Request | Parked)]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
        assert left == []

    run(scenario)


@pytest.mark.parametrize("group", ["fail", "fail later"])
def test_bug_is_logged_with_its_request_and_answered(
    group: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(connection: Connection) -> None:
        response = await connection.heartbeat(group)
        assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert (await connection.heartbeat("now")).throttle_time_ms == 1

    run(scenario)
    assert "Bug in HEARTBEAT version 3, correlation id 7, client 'tester'" in caplog.text


def test_silence_and_closing_are_possible_outcomes() -> None:
    async def scenario(connection: Connection) -> None:
        connection.send(3, HeartbeatRequest(group_id="silent"))
        assert (await connection.heartbeat("now")).throttle_time_ms == 1
        connection.send(3, HeartbeatRequest(group_id="close"))
        assert await connection.is_closed()

    run(scenario)


@pytest.mark.parametrize(("key", "version"), [(12, 4), (12, -1), (3, 0), (9999, 0), (-1, 0)])
def test_unserved_api_or_version_closes_with_one_line(
    key: int, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(connection: Connection) -> None:
        header = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True)
        frame = header + (7).to_bytes(4, "big") + b"\xff\xff\x00"
        connection.writer.write(SIZE_PREFIX.pack(len(frame)) + frame)
        assert await connection.is_closed()

    with caplog.at_level(logging.INFO):
        run(scenario)
    assert len([line for line in caplog.messages if "Closing" in line]) == 1


def test_api_versions_of_an_unknown_version_gets_a_v0_reply_with_its_own_range() -> None:
    async def scenario(connection: Connection) -> None:
        frame = b"\x00\x12\x00\x63\x00\x00\x00\x07\xff\xff\x00"
        connection.writer.write(SIZE_PREFIX.pack(len(frame)) + frame)
        correlation_id, response = await connection.receive(ApiKey.API_VERSIONS, 0)
        assert correlation_id == 7
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        served = [(one.api_key, one.min_version, one.max_version) for one in response.api_keys]
        assert served == [(ApiKey.API_VERSIONS, 0, 3)]
        connection.send(0, ApiVersionsRequest())
        _, response = await connection.receive(ApiKey.API_VERSIONS, 0)
        assert response.error_code == ErrorCode.NONE

    run(scenario)


@pytest.mark.parametrize("body", [b"", b"\x00\x05abc"])
def test_undecodable_request_closes_the_connection(body: bytes) -> None:
    async def scenario(connection: Connection) -> None:
        frame = b"\x00\x0c\x00\x00\x00\x00\x00\x07\xff\xff" + body
        connection.writer.write(SIZE_PREFIX.pack(len(frame)) + frame)
        assert await connection.is_closed()

    run(scenario)
