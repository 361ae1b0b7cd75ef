"""The outbound connection against small servers that answer rightly, wrongly or not at all."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from network.client import BrokerConnection, ConnectionEnded
from network.frame import SIZE_PREFIX
from network.protocol import ApiKey, ProtocolError, decode_request_header, encode_response
from network.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

Answer = Callable[[int], bytes]


def right_answer(correlation_id: int) -> bytes:
    response = HeartbeatResponse(throttle_time_ms=correlation_id)
    return b"".join(encode_response(ApiKey.HEARTBEAT, 3, correlation_id, response))


@asynccontextmanager
async def connection_to(answer: Answer) -> AsyncIterator[BrokerConnection]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while size := await reader.read(4):
            frame = await reader.readexactly(SIZE_PREFIX.unpack(size)[0])
            header, _ = decode_request_header(memoryview(frame))
            reply = answer(header.correlation_id)
            if not reply:
                break
            writer.write(reply)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        async with BrokerConnection(host, port, "tester") as connection:
            yield connection
    finally:
        server.close()


def run(answer: Answer, test: Callable[[BrokerConnection], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with connection_to(answer) as connection:
            await asyncio.wait_for(test(connection), 30)

    asyncio.run(bounded())


def test_pipelined_requests_get_their_own_answers() -> None:
    async def scenario(connection: BrokerConnection) -> None:
        asked = [connection.ask(HeartbeatRequest(group_id="g"), 3) for _ in range(20)]
        answers = await asyncio.gather(*asked)
        assert answers == [HeartbeatResponse(throttle_time_ms=number) for number in range(20)]

    run(right_answer, scenario)


def test_closed_connection_fails_what_waits_and_what_follows() -> None:
    async def scenario(connection: BrokerConnection) -> None:
        for _ in range(2):
            with pytest.raises(ConnectionEnded):
                await connection.ask(HeartbeatRequest(group_id="g"), 3)
        assert not connection.is_open

    run(lambda _correlation_id: b"", scenario)


@pytest.mark.parametrize(
    "answer",
    [
        lambda correlation_id: right_answer(correlation_id + 1),
        lambda _correlation_id: SIZE_PREFIX.pack(-1),
        lambda _correlation_id: SIZE_PREFIX.pack(3) + b"abc",
    ],
    ids=["of another request", "negative size", "garbage"],
)
def test_wrong_answer_is_a_protocol_error_and_ends_the_connection(answer: Answer) -> None:
    async def scenario(connection: BrokerConnection) -> None:
        with pytest.raises(ProtocolError):
            await connection.ask(HeartbeatRequest(group_id="g"), 3)
        with pytest.raises(ConnectionEnded):
            await connection.ask(HeartbeatRequest(group_id="g"), 3)

    run(answer, scenario)
