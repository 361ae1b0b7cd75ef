"""The load, in a process of its own: librdkafka, and a raw client that costs next to nothing.

The raw client sends prepared bytes and counts the bytes that come back, since every response to the
same produce has the same size: what it measures is the broker.

Run: python -m benchmarks.serve_load NAME OPTIONS, which prints the outcome; both are JSON.
"""

import json
import os
import select
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from network.protocol import ApiKey, ErrorCode, decode_response, encode_request
from network.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from network.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from storage.records import BatchBuilder

RECORD_BYTES = 1024
SMALL_BATCH_BYTES = 100
BATCH_OVERHEAD = 61
RECORD_OVERHEAD = 7
RECORDS_PER_RAW_BATCH = 60
PRODUCE_VERSION = 8
FETCH_VERSION = 11
TIMEOUT_SECONDS = 120.0
READ_BYTES = 1 << 20
MESSAGES_PER_CALL = 500
# Enough for the client never to stop fetching because its own queue is full.
DEEP_QUEUE = {"queued.min.messages": 10_000_000, "queued.max.messages.kbytes": 2_097_151}

Outcome = dict[str, float]


def produce_with_librdkafka(*, port: int, topic: str, records: int) -> Outcome:
    failed: list[object] = []

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "acks": 1,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 256 << 10,
            "delivery.report.only.error": True,
        }
    )
    producer.list_topics(topic, TIMEOUT_SECONDS)
    value = os.urandom(RECORD_BYTES)
    started = time.perf_counter()
    left = records
    while left:
        wanted = min(left, MESSAGES_PER_CALL)
        queued = producer.produce_batch(topic, [{"value": value}] * wanted, on_delivery=delivered)
        left -= queued
        producer.poll(0 if queued == wanted else 0.001)
    assert producer.flush(TIMEOUT_SECONDS) == 0
    assert not failed, failed[0]
    return {"seconds": time.perf_counter() - started, "bytes": records * RECORD_BYTES}


def consume_with_librdkafka(*, port: int, topic: str, partitions: int, records: int) -> Outcome:
    consumer = Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "group.id": "bench",
            "enable.auto.commit": False,
            **DEEP_QUEUE,
        }
    )
    consumer.list_topics(topic, TIMEOUT_SECONDS)
    received = 0
    started = time.perf_counter()
    consumer.assign([TopicPartition(topic, one, 0) for one in range(partitions)])
    while received < records and time.perf_counter() - started < TIMEOUT_SECONDS:
        received += len(consumer.consume(10_000, 0.05))
    seconds = time.perf_counter() - started
    consumer.close()
    assert received == records, f"{received} of {records} records came"
    return {"seconds": seconds, "bytes": records * RECORD_BYTES}


def produce_raw(*, port: int, topic: str, in_flight: int, records: int) -> Outcome:
    """Large batches of 1 KB records, one connection."""
    window = Window(port, produce_frame(topic, [RECORD_BYTES] * RECORDS_PER_RAW_BATCH), in_flight)
    batches = records // RECORDS_PER_RAW_BATCH
    started = time.perf_counter()
    window.fill()
    while window.answered < batches:
        window.take()
    window.drain()
    size = window.answered * RECORDS_PER_RAW_BATCH * RECORD_BYTES
    return {"seconds": time.perf_counter() - started, "bytes": size}


def fetch_raw(*, port: int, topic: str, records: int) -> Outcome:
    """Read a partition's bytes as fast as they come, and look at none of them."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=8 << 20)
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=50 << 20,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )
    frame = b"".join(encode_request(ApiKey.FETCH, FETCH_VERSION, 1, request, "bench"))
    buffer = memoryview(bytearray(READ_BYTES))
    wanted, received = records * RECORD_BYTES, 0
    with socket.create_connection(("127.0.0.1", port)) as connection:
        started = time.perf_counter()
        while received < wanted:
            # The same bytes again and again: the client need not know where a batch begins.
            connection.sendall(frame)
            size = discard(connection, buffer)
            assert size > RECORD_BYTES, "the broker sends no records"
            received += size
        seconds = time.perf_counter() - started
    return {"seconds": seconds, "bytes": received}


def discard(connection: socket.socket, buffer: memoryview) -> int:
    """Receive one response into nowhere; its size."""
    filled = 0
    while filled < 4:
        filled += receive(connection, buffer[filled:])
    left = int.from_bytes(buffer[:4], "big") + 4 - filled
    size = left + filled
    while left:
        left -= receive(connection, buffer[:left])
    return size


def receive(connection: socket.socket, buffer: memoryview) -> int:
    received = connection.recv_into(buffer)
    assert received, "the broker closed the connection"
    return received


def request_rate(
    *, port: int, topic: str, connections: int, in_flight: int, seconds: float
) -> Outcome:
    """Small produces, so many at a time on each connection."""
    frame = produce_frame(topic, small_batch())
    windows = [Window(port, frame, in_flight) for _ in range(connections)]
    if connections == 1:
        return rate_of_one(windows[0], seconds)
    poller = select.epoll()
    by_descriptor = {}
    for window in windows:
        window.fill()
        poller.register(window.socket.fileno(), select.EPOLLIN)
        by_descriptor[window.socket.fileno()] = window
    started = time.perf_counter()
    deadline = started + seconds
    while (now := time.perf_counter()) < deadline:
        for descriptor, _ in poller.poll(1.0):
            by_descriptor[descriptor].take()
    count = sum(window.answered for window in windows)
    for window in windows:
        window.drain()
    return {"seconds": now - started, "requests": count}


def rate_of_one(window: "Window", seconds: float) -> Outcome:
    started = time.perf_counter()
    deadline = started + seconds
    window.fill()
    while (now := time.perf_counter()) < deadline:
        window.take()
    count = window.answered
    window.drain()
    return {"seconds": now - started, "requests": count}


def latency(*, port: int, topic: str, connections: int, rate: int, seconds: float) -> Outcome:
    """Small produces at fixed times, whatever became of those before; from the time at which each
    was due until its response."""
    frame = produce_frame(topic, small_batch())
    windows = [Window(port, frame, 1) for _ in range(connections)]
    due: dict[socket.socket, deque[float]] = {one.socket: deque() for one in windows}
    sockets = [one.socket for one in windows]
    sizes = dict.fromkeys(sockets, windows[0].response_size)
    pending_bytes = dict.fromkeys(sockets, 0)
    took: list[float] = []
    total = int(rate * seconds)
    sent = 0
    started = time.perf_counter()
    while len(took) < total:
        now = time.perf_counter()
        while sent < total and now >= (moment := started + sent / rate):
            connection = sockets[sent % connections]
            due[connection].append(moment)
            connection.sendall(frame)
            sent += 1
        pause = max(0.0, started + sent / rate - now) if sent < total else 1.0
        readable, _, _ = select.select(sockets, [], [], pause)
        now = time.perf_counter()
        for connection in readable:
            pending_bytes[connection] += len(connection.recv(READ_BYTES))
            while pending_bytes[connection] >= sizes[connection]:
                pending_bytes[connection] -= sizes[connection]
                took.append(now - due[connection].popleft())
    took.sort()
    return {
        name: took[min(len(took) - 1, int(len(took) * share))] * 1e6
        for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))
    }


class Window:
    """One connection that keeps so many of the same request under way."""

    def __init__(self, port: int, frame: bytes, in_flight: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answered = 0
        self._frame_size = len(frame)
        self._frames = memoryview(frame * in_flight)
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._partial = 0
        self.response_size = self._first_response(frame)

    def _first_response(self, frame: bytes) -> int:
        self.socket.sendall(frame)
        data = b""
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            data += self.socket.recv(READ_BYTES)
        _, response = decode_response(ApiKey.PRODUCE, PRODUCE_VERSION, memoryview(data)[4:])
        assert isinstance(response, ProduceResponse)
        assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE, response
        return len(data)

    def fill(self) -> None:
        self.socket.sendall(self._frames)

    def take(self) -> None:
        """Receive what is there, and send as many requests as were answered."""
        count = self._receive()
        if count:
            self.socket.sendall(self._frames[: count * self._frame_size])

    def drain(self) -> None:
        """Wait for what is still under way, and close."""
        left = len(self._frames) // self._frame_size
        while left > 0:
            left -= self._receive()
        self.socket.close()

    def _receive(self) -> int:
        received = receive(self.socket, self._buffer)
        count, self._partial = divmod(self._partial + received, self.response_size)
        self.answered += count
        return count


def produce_frame(topic: str, sizes: list[int]) -> bytes:
    builder = BatchBuilder()
    for size in sizes:
        builder.append(1_700_000_000_000, None, os.urandom(size))
    data = PartitionProduceData(index=0, records=memoryview(builder.build()))
    request = ProduceRequest(
        acks=1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    parts = encode_request(ApiKey.PRODUCE, PRODUCE_VERSION, 1, request, "bench")
    return b"".join(map(bytes, parts))


def small_batch() -> list[int]:
    return [SMALL_BATCH_BYTES - BATCH_OVERHEAD - RECORD_OVERHEAD]


LOADS: dict[str, Callable[..., Outcome]] = {
    one.__name__: one
    for one in (
        produce_with_librdkafka,
        consume_with_librdkafka,
        produce_raw,
        fetch_raw,
        request_rate,
        latency,
    )
}


def main() -> None:
    options: dict[str, Any] = json.loads(sys.argv[2])
    print(json.dumps(LOADS[sys.argv[1]](**options)))


if __name__ == "__main__":
    main()
