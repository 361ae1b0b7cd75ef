"""Clients that misbehave, against a broker of its own: others are served, and memory has its bound.

The bound: what the broker holds when idle, the pool (queued.max.request.bytes), the one request by
which the pool may be overdrawn, and what connections cost beside their requests.
"""

import contextlib
import os
import resource
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from network.protocol import encode_request
from network.protocol.messages.api_versions import ApiVersionsRequest
from network.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from network.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from network.protocol.schema import Request
from tests.support.api import create_topic, fetch, new_topic, produce, values
from tests.support.broker import BrokerProcess
from tests.support.certificates import TlsFiles, make_tls_files
from tests.support.raw_client import RawClient, make_batch

MEGABYTE = 1 << 20
MAX_REQUEST = 101 * MEGABYTE
POOL = 128 * MEGABYTE
OVERHEAD = 24 * MEGABYTE
"""Scratch buffers, what the allocator keeps, responses on their way, log lines."""
BYTES_PER_CONNECTION = 8 << 10
IDLE_CONNECTIONS = 5000
TIMEOUT_SECONDS = 60.0


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return make_tls_files(tmp_path_factory.mktemp("tls"))


class TwoListeners(BrokerProcess):
    """A broker that listens in plain and in TLS."""

    plain_port: int
    tls_port: int

    @classmethod
    def make(cls, data: Path, files: TlsFiles) -> "TwoListeners":
        plain, tls = _free_port(), _free_port()
        broker = cls(
            data,
            {
                "listeners": f"PLAINTEXT://127.0.0.1:{plain},SSL://127.0.0.1:{tls}",
                "socket.request.max.bytes": str(MAX_REQUEST),
                "queued.max.request.bytes": str(POOL),
                "connections.max.idle.ms": "6000",
                **files.broker_settings,
                "ssl.client.auth": "none",
            },
        )
        broker.plain_port, broker.tls_port = plain, tls
        return broker


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def broker(files: TlsFiles, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoListeners]:
    with TwoListeners.make(tmp_path_factory.mktemp("data"), files) as broker:
        assert isinstance(broker, TwoListeners)
        yield broker


class Watch:
    """The broker's memory since it was idle."""

    def __init__(self, broker: TwoListeners) -> None:
        self._process = psutil.Process(broker.pid)
        self._idle = self.memory()

    def memory(self) -> int:
        rss: int = self._process.memory_info().rss
        return rss

    def grown(self) -> int:
        return self.memory() - self._idle


@pytest.fixture
def watch(broker: TwoListeners) -> Iterator[Watch]:
    """Every test here ends with others being served, and with memory within its bound."""
    assert_others_are_served(broker)
    watch = Watch(broker)
    yield watch
    assert_others_are_served(broker)
    assert watch.grown() <= POOL + MAX_REQUEST + OVERHEAD


def assert_others_are_served(broker: TwoListeners) -> None:
    with RawClient(broker.plain_port) as client:
        topic = new_topic(client)
        produce(client, topic, make_batch(b"still here"))
        assert values(fetch(client, topic, 0)) == [b"still here"]


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS)


def is_closed_by_broker(sock: socket.socket) -> bool:
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


def encoded(message: Request, version: int, correlation_id: int = 0) -> bytes:
    parts = encode_request(message.API_KEY, version, correlation_id, message, "abuse")
    return b"".join(map(bytes, parts))


def receive_response(sock: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", receive_exactly(sock, 4))
    return receive_exactly(sock, size)


def receive_exactly(sock: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        data = sock.recv(min(count - len(received), MEGABYTE))
        assert data, "the broker closed the connection"
        received += data
    return bytes(received)


@pytest.mark.parametrize("size", [-1, 0, 2**31 - 1, MAX_REQUEST + 1])
def test_impossible_sizes_close_the_connection(
    broker: TwoListeners, watch: Watch, size: int
) -> None:
    with connect(broker.plain_port) as sock:
        sock.sendall(struct.pack(">i", size) + b"rest" * 10)
        assert is_closed_by_broker(sock)
    assert watch.grown() < OVERHEAD


def test_announced_bytes_cost_no_more_than_what_was_announced(
    broker: TwoListeners, watch: Watch
) -> None:
    announced = POOL // 1000
    connections = 300
    with contextlib.ExitStack() as stack:
        for _ in range(connections):
            sock = stack.enter_context(connect(broker.plain_port))
            sock.sendall(struct.pack(">i", announced) + b"a few bytes")
        assert_others_are_served(broker)
        assert watch.grown() < connections * announced + OVERHEAD


def test_silent_halves_of_requests_that_hold_the_pool_are_closed_as_idle(
    broker: TwoListeners, watch: Watch
) -> None:
    """As in Kafka a frame that has begun holds its size in the pool, until it is whole or idle."""
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connect(broker.plain_port)) for _ in range(4)]
        for sock in silent:
            sock.sendall(struct.pack(">i", MAX_REQUEST) + b"half")
        assert all(map(is_closed_by_broker, silent[:2]))
        assert_others_are_served(broker)
        assert watch.grown() < OVERHEAD


def test_one_byte_at_a_time_is_a_request_in_the_end(broker: TwoListeners, watch: Watch) -> None:
    request = encoded(ApiVersionsRequest(), 0)
    with connect(broker.plain_port) as sock, RawClient(broker.plain_port) as other:
        for position in range(len(request)):
            sock.sendall(request[position : position + 1])
            if position < 3:
                time.sleep(1.0)  # the rest need not be that slow to come alone
            other.ask(ApiVersionsRequest(), 0)
        assert receive_response(sock)


def test_thousands_of_idle_connections_cost_little(broker: TwoListeners, watch: Watch) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * IDLE_CONNECTIONS:
        pytest.skip(f"only {hard} descriptors are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    sockets: list[socket.socket] = []
    try:
        sockets.extend(connect(broker.plain_port) for _ in range(IDLE_CONNECTIONS))
        assert_others_are_served(broker)
        assert count_connections(broker) >= IDLE_CONNECTIONS
        assert watch.grown() < OVERHEAD + IDLE_CONNECTIONS * BYTES_PER_CONNECTION
        last = sockets[-1]
        last.sendall(encoded(ApiVersionsRequest(), 0))
        assert receive_response(last)
    finally:
        for sock in sockets:
            sock.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def count_connections(broker: TwoListeners) -> int:
    return len(os.listdir(f"/proc/{broker.pid}/fd"))


def test_storms_of_connections_that_come_and_go(broker: TwoListeners, watch: Watch) -> None:
    before = count_connections(broker)
    linger = struct.pack("ii", 1, 0)
    for number in range(3000):
        sock = connect(broker.plain_port if number % 4 else broker.tls_port)
        if number % 2:  # a reset instead of a goodbye
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        sock.close()
    assert_others_are_served(broker)
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while count_connections(broker) > before + 10:
        assert time.monotonic() < deadline, "connections are left behind"
        time.sleep(0.01)


def fetch_of_everything(topic: str, correlation_id: int) -> bytes:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=2**31 - 1)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=2**31 - 1,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )
    return encoded(request, 10, correlation_id)


@pytest.mark.parametrize("secured", [False, True])
def test_a_gigabyte_of_responses_that_nobody_reads_costs_no_memory(
    broker: TwoListeners, watch: Watch, files: TlsFiles, secured: bool
) -> None:
    topic, megabytes = f"unread-{secured}", 40
    with RawClient(broker.plain_port) as client:
        create_topic(client, topic)
        batch = make_batch(os.urandom(MEGABYTE - 4096))
        for _ in range(megabytes):
            produce(client, topic, batch)
    before = watch.memory()
    fetches = b"".join(fetch_of_everything(topic, number) for number in range(30))
    with contextlib.ExitStack() as stack:
        readers = [open_reader(stack, broker, files, secured) for _ in range(3)]
        for sock in readers:
            sock.sendall(fetches)  # 30 times 40 MB each
        assert_others_are_served(broker)
        assert watch.memory() - before < OVERHEAD
        assert len(receive_response(readers[0])) > megabytes * (MEGABYTE - 8192)


def open_reader(
    stack: contextlib.ExitStack, broker: TwoListeners, files: TlsFiles, secured: bool
) -> socket.socket:
    if not secured:
        return stack.enter_context(connect(broker.plain_port))
    context = ssl.create_default_context(cafile=str(files.authority))
    plain = connect(broker.tls_port)
    return stack.enter_context(context.wrap_socket(plain, server_hostname="localhost"))


def test_tls_to_the_plain_listener_and_the_reverse(
    broker: TwoListeners, watch: Watch, files: TlsFiles
) -> None:
    context = ssl.create_default_context(cafile=str(files.authority))
    with connect(broker.plain_port) as sock, pytest.raises(OSError):  # noqa: PT011
        context.wrap_socket(sock, server_hostname="localhost")
    with connect(broker.tls_port) as sock:
        sock.sendall(encoded(ApiVersionsRequest(), 0))
        with contextlib.suppress(ConnectionResetError):
            while sock.recv(100):  # an alert may come before the end
                pass


def test_thousands_of_pipelined_requests_are_answered_in_order(
    broker: TwoListeners, watch: Watch
) -> None:
    number = 20_000
    with connect(broker.plain_port) as sock:
        flood = b"".join(encoded(ApiVersionsRequest(), 0, one) for one in range(number))
        sender = threading.Thread(target=sock.sendall, args=(flood,))
        sender.start()
        time.sleep(0.3)  # nobody reads: the broker must stop taking requests
        assert_others_are_served(broker)
        assert watch.grown() < OVERHEAD
        for expected in range(number):
            (correlation_id,) = struct.unpack_from(">i", receive_response(sock))
            assert correlation_id == expected
        sender.join(TIMEOUT_SECONDS)


def test_large_requests_do_not_starve_small_ones(broker: TwoListeners, watch: Watch) -> None:
    large = 6
    records = memoryview(bytearray(make_batch(os.urandom(MAX_REQUEST - MEGABYTE))))
    request = ProduceRequest(
        acks=1,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                name="large", partition_data=[PartitionProduceData(index=0, records=records)]
            )
        ],
    )
    data = encoded(request, 8)

    def stream() -> None:
        with connect(broker.plain_port) as sock:
            for _ in range(large):
                sock.sendall(data)
                receive_response(sock)

    streaming = threading.Thread(target=stream)
    answered = 0
    with RawClient(broker.plain_port) as heartbeats:
        streaming.start()
        while streaming.is_alive():
            heartbeats.ask(ApiVersionsRequest(), 0)
            answered += 1
    assert answered > 5 * large, "several for each of the large ones"
