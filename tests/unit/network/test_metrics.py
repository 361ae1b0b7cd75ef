"""Figures of the network: what a request leaves behind, and what the connections do."""

import asyncio
import logging
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from network.histogram import Buckets, Histogram, Sample
from network.metrics import ROWS_PER_FOLD, IdleMeter
from network.request import Request
from network.request_log import REQUEST_LOGGER, TRACE
from network.socket_server import NetworkLimits, SocketServer
from tests.unit.network.sockets import Client, echo, framed, run, serving, until

API_VERSIONS = bytes([0, 18, 0, 0, 0, 0, 0, 7, 0, 2]) + b"me"
TIMES = (
    "request_queue_seconds",
    "local_seconds",
    "remote_seconds",
    "throttle_seconds",
    "response_queue_seconds",
    "response_send_seconds",
    "total_seconds",
)


def figures(server: SocketServer, api: str = "API_VERSIONS") -> dict[str, Buckets]:
    wanted = (("plane", "data"), ("api", api))
    return {
        one.name: one.value
        for one in server.collect()
        if one.labels == wanted and isinstance(one.value, Buckets)
    }


def gauge(samples: list[Sample], name: str) -> float:
    (value,) = [one.value for one in samples if one.name == name]
    assert not isinstance(value, Buckets)
    return value


@given(st.lists(st.floats(0, 100)))
def test_a_histogram_counts_each_value_below_its_bounds(numbers: list[float]) -> None:
    bounds = (0.5, 1.0, 10.0)
    histogram = Histogram(bounds)
    histogram.observe_all(list(numbers[::2]))
    histogram.observe_all(list(numbers[1::2]))
    buckets = histogram.buckets()
    for bound, count in buckets.cumulative:
        assert count == sum(number <= bound for number in numbers)
    assert buckets.cumulative[-1] == (math.inf, len(numbers))
    assert buckets.count == len(numbers)
    assert buckets.total == pytest.approx(sum(numbers))


@pytest.mark.parametrize("number", [1, ROWS_PER_FOLD - 1, 3 * ROWS_PER_FOLD + 5])
def test_every_request_is_in_every_figure_of_its_api(number: int) -> None:
    async def scenario() -> None:
        async with serving(echo) as server:
            client = await Client.connect(server)
            client.send(*[API_VERSIONS] * number)
            for _ in range(number):
                await client.receive()
            await until(lambda: figures(server)["total_seconds"].count == number)
            seen = figures(server)
            for name in TIMES:
                assert seen[name].count == number
            assert seen["request_bytes"].total == number * len(API_VERSIONS)
            assert seen["response_bytes"].total == number * (len(API_VERSIONS) + 4)
            parts = sum(seen[name].total for name in TIMES if name != "total_seconds")
            assert parts == pytest.approx(seen["total_seconds"].total)

    run(scenario)


def test_times_go_where_they_were_spent() -> None:
    async def scenario() -> None:
        gate = asyncio.Event()
        parked: list[Request] = []

        async def work(request: Request) -> None:
            await gate.wait()
            request.respond([framed(b"worked")])

        def handle(request: Request) -> object:
            if request.frame[1] == 1:
                parked.append(request)
                return None
            return work(request)

        limits = NetworkLimits(handler_workers=1)
        async with serving(handle, limits) as server:  # type: ignore[arg-type]
            parking, working, queued = [await Client.connect(server) for _ in range(3)]
            parking.send(bytes([0, 1]))
            await until(lambda: bool(parked))
            working.send(bytes([0, 2]))
            await until(lambda: server.request_channel.idle_workers == 0)
            queued.send(bytes([0, 3]))
            await until(lambda: len(server.request_channel) == 1)
            await asyncio.sleep(0.05)
            parked[0].respond([framed(b"parked")], throttle_ms=70)
            gate.set()
            for client in (parking, working, queued):
                await client.receive()
            fetch, list_offsets, metadata = (
                figures(server, name) for name in ("FETCH", "LIST_OFFSETS", "METADATA")
            )
            assert fetch["remote_seconds"].total > 0.04 > fetch["local_seconds"].total
            assert fetch["throttle_seconds"].total == pytest.approx(0.07)
            assert list_offsets["local_seconds"].total > 0.04
            assert metadata["request_queue_seconds"].total > 0.04
            assert gauge(list(server.collect()), "request_handler_busy_seconds_total") > 0.04

    run(scenario)


def test_unknown_apis_share_one_entry() -> None:
    async def scenario() -> None:
        async with serving(echo) as server:
            client = await Client.connect(server)
            for key in range(100, 200):
                await client.ask(bytes([key, 0]))
            assert figures(server, "unknown")["total_seconds"].count == 100
            assert len({one.labels for one in server.collect() if one.name == "local_seconds"}) == 1

    run(scenario)


def test_idle_workers_show_in_the_ratio() -> None:
    meter = IdleMeter(now=100.0)
    assert meter.ratio(now=110.0, busy_seconds=5.0, workers=2) == 0.75
    assert meter.ratio(now=120.0, busy_seconds=5.0, workers=2) == 1.0
    assert meter.ratio(now=120.0, busy_seconds=5.0, workers=2) == 1.0


def test_connections_mutes_and_broken_frames_are_counted() -> None:
    async def scenario() -> None:
        parked: list[Request] = []
        async with serving(parked.append) as server:
            muted, broken = await Client.connect(server), await Client.connect(server)
            muted.send(b"one")
            await until(lambda: bool(parked))
            muted.send(b"two")
            broken.writer.write(b"\xff\xff\xff\xff")
            counters = server.counters("PLAINTEXT")
            await until(lambda: counters.mutes == 1 and counters.broken_frames == 1)
            samples = list(server.collect())
            assert gauge(samples, "connections_accepted_total") == 2
            assert gauge(samples, "connections") == 1

    run(scenario)


def test_the_request_log_tells_of_each_request(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with serving(echo) as server:
            client = await Client.connect(server)
            for level, payload in (
                (logging.INFO, API_VERSIONS),
                (logging.DEBUG, API_VERSIONS),
                (TRACE, API_VERSIONS),
                (logging.DEBUG, b"gibberish"),
            ):
                caplog.set_level(level, REQUEST_LOGGER)
                await client.ask(payload)

    run(scenario)
    quiet, detailed, unreadable = [
        one.getMessage() for one in caplog.records if one.name == REQUEST_LOGGER
    ]
    named = "Completed request: API_VERSIONS version 0, correlation id 7, client 'me'"
    assert quiet.startswith(f"{named}, 12 bytes, response 16 bytes from connection 127.0.0.1:")
    assert "localTime:" in quiet
    assert quiet.endswith("securityProtocol:PLAINTEXT,listener:PLAINTEXT")
    assert detailed.startswith(f"{named} -- ApiVersionsRequest(")
    assert "unreadable request" in unreadable
