"""Produce and consume with librdkafka against a running broker: rates, and what they cost it.

Prints MB/s, the broker's CPU seconds per GB, and for produce the ratio to the kernel's own work,
measured in the same run: a bare process that receives the same bytes over loopback, checksums them
and writes them to a file. Run: python -m benchmarks.throughput [--megabytes N]
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support.broker import BrokerProcess, running_broker

RECORD_BYTES = 1024
CHUNK_BYTES = 1 << 20
SYNC_RECORDS = 2000
TIMEOUT_SECONDS = 120.0
GIGABYTE = 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=500)
    count = parser.parse_args().megabytes * 1_000_000 // RECORD_BYTES
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as directory:
        kernel = kernel_cost(Path(directory), count * RECORD_BYTES)
        print(f"{'the kernel alone':34} {'':>12} CPU s/GB {kernel:6.2f}")
        with running_broker(Path(directory) / "logs", {"num.partitions": "1"}) as broker:
            produce_all(broker, "warm", count // 10, {})
            for name, settings in (
                ("produce, librdkafka's defaults", {}),
                ("produce, acks=1", {"acks": "1"}),
            ):
                report(
                    broker,
                    name,
                    count,
                    lambda settings=settings: produce_all(broker, "bench", count, settings),  # type: ignore[misc]
                    kernel,
                )
            report(broker, "consume", count, lambda: consume_all(broker, "bench", count))
            sync_rate(broker)
            memory = psutil.Process(broker.pid).memory_info().rss / 1e6
            print(f"{'resident memory, loaded':34} {memory:8.0f} MB")


def report(
    broker: BrokerProcess,
    name: str,
    count: int,
    work: Callable[[], None],
    kernel: float | None = None,
) -> None:
    cpu, started = cpu_seconds(broker.pid), time.monotonic()
    work()
    elapsed, used = time.monotonic() - started, cpu_seconds(broker.pid) - cpu
    size = count * RECORD_BYTES
    per_gigabyte = used / size * GIGABYTE
    ratio = "" if kernel is None else f"  {per_gigabyte / kernel:.2f}x the kernel's own work"
    print(f"{name:34} {size / elapsed / 1e6:7.0f} MB/s CPU s/GB {per_gigabyte:6.2f}{ratio}")


def produce_all(broker: BrokerProcess, topic: str, count: int, settings: dict[str, str]) -> None:
    failed: list[object] = []

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer({"bootstrap.servers": broker.bootstrap, **settings})
    value = os.urandom(RECORD_BYTES)
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, value, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.05)
        producer.poll(0)
    assert producer.flush(TIMEOUT_SECONDS) == 0
    assert not failed, failed[0]


def consume_all(broker: BrokerProcess, topic: str, count: int) -> None:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "bench", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    received = 0
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while received < count and time.monotonic() < deadline:
        received += len(consumer.consume(10_000, 1.0))
    consumer.close()
    assert received >= count, f"{received} of {count} records came"


def sync_rate(broker: BrokerProcess) -> None:
    """One record at a time, each waited for; without the time librdkafka waits for more."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    value = os.urandom(RECORD_BYTES)
    cpu, took = cpu_seconds(broker.pid), []
    for _ in range(SYNC_RECORDS):
        started = time.perf_counter()
        producer.produce("sync", value)
        assert producer.flush(TIMEOUT_SECONDS) == 0
        took.append(time.perf_counter() - started)
    used = cpu_seconds(broker.pid) - cpu
    took.sort()
    rate, middle, late = len(took) / sum(took), took[len(took) // 2], took[len(took) * 99 // 100]
    print(
        f"{'sync produce, one at a time':34} {rate:7.0f} /s   p50 {middle * 1e6:.0f} us"
        f" p99 {late * 1e6:.0f} us, broker CPU {used / len(took) * 1e6:.0f} us each"
    )


def cpu_seconds(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def kernel_cost(directory: Path, size: int) -> float:
    """CPU seconds per GB of receiving, checksumming and writing, and nothing else."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        command = [sys.executable, "-m", "benchmarks.throughput_baseline", str(directory)]
        child = subprocess.Popen([*command, str(listener.fileno())], pass_fds=[listener.fileno()])
        try:
            with socket.create_connection(("127.0.0.1", port)) as sender:
                chunk = os.urandom(CHUNK_BYTES)
                sender.sendall(chunk)
                sender.recv(1)
                before = cpu_seconds(child.pid)
                for _ in range(size // CHUNK_BYTES):
                    sender.sendall(chunk)
                    sender.recv(1)
                used = cpu_seconds(child.pid) - before
        finally:
            child.kill()
            child.wait()
            with suppress(FileNotFoundError):
                (directory / "baseline").unlink()
    return used / size * GIGABYTE


if __name__ == "__main__":
    main()
