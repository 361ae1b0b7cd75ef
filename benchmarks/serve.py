"""Drives a running broker and prints what it serves and what that costs it.

Rates, latencies, CPU seconds per GB, memory and the time from start to serving; with `--peer kafka`
Apache Kafka does the same on the same machine in the same run, in turns with Barnabas, and each row
has its ratio and whether the bar holds. Both are warmed up by one full round that does not count.

Run: python -m benchmarks.serve [--peer kafka] [--rounds N] [--seconds S] [--megabytes M]
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.serve_kernel import kernel_cost
from benchmarks.serve_servers import (
    Barnabas,
    Kafka,
    Server,
    cpu_seconds,
    resident_megabytes,
    running,
)

RECORD_BYTES = 1024
LOAD_TIMEOUT_SECONDS = 180.0
LATENCY_RATE = 1000
MORE_THAN_NEEDED = 1.3
LATENCY_CONNECTIONS = 8

PRODUCE_CPU, CONSUME_CPU, MEGABYTES = 0.25, 0.9, 1.2


@dataclass
class Row:
    """A line of the table. A bar is a ratio to Kafka: at least it, where more is better."""

    name: str
    unit: str
    bar: float | None = None
    more_is_better: bool = False
    figures: dict[str, list[float]] = field(default_factory=dict)

    def add(self, server: Server, figure: float) -> None:
        self.figures.setdefault(server.name, []).append(figure)

    def figure(self, name: str) -> float | None:
        """The best round: whatever else the machine does can only make one worse."""
        figures = self.figures.get(name)
        if not figures:
            return None
        return max(figures) if self.more_is_better else min(figures)

    def show(self) -> str:
        ours, theirs = self.figure(Barnabas.name), self.figure(Kafka.name)
        assert ours is not None
        line = f"{self.name:44} {digits(ours):>9}"
        if theirs is None:
            return f"{line}  {self.unit}"
        ratio = ours / theirs
        line += f" {digits(theirs):>9}  {self.unit:9} {ratio:7.2f}"
        if self.bar is None:
            return line
        sign = ">=" if self.more_is_better else "<="
        holds = ratio >= self.bar if self.more_is_better else ratio <= self.bar
        return f"{line}   {sign} {self.bar:<5} {'holds' if holds else 'MISSED'}"


def digits(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.2f}"


class Table:
    """The rows, in the order in which they were first met."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}

    def add(
        self,
        server: Server,
        name: str,
        unit: str,
        figure: float,
        bar: float | None = None,
        *,
        more_is_better: bool = False,
    ) -> None:
        row = self._rows.setdefault(name, Row(name, unit, bar, more_is_better))
        row.add(server, figure)

    def show(self, servers: Sequence[Server]) -> None:
        names = "".join(f" {one.name:>9}" for one in servers)
        ratio = f"  {'':9} {'ratio':>7}   bar" if len(servers) > 1 else ""
        print(f"{'':44}{names}{ratio}")
        for row in self._rows.values():
            print(row.show())


class Bench:
    """One run: the loads of a round, one after the other, on every server in turn."""

    def __init__(self, table: Table, directory: Path, seconds: float, megabytes: int) -> None:
        self._table = table
        self._directory = directory
        self._seconds = seconds
        self._records = megabytes * 1_000_000 // RECORD_BYTES

    def round(self, servers: Sequence[Server], number: int, *, counts: bool) -> None:
        for step in (
            self._throughput_of_one_partition,
            self._throughput_of_many_partitions,
            self._raw_throughput,
            self._request_rates,
            self._latency,
        ):
            for server in servers:
                step(server, number, self._table if counts else Table())

    def _throughput_of_one_partition(self, server: Server, number: int, table: Table) -> None:
        self._throughput(server, table, f"one-{number}", 1)

    def _throughput_of_many_partitions(self, server: Server, number: int, table: Table) -> None:
        self._throughput(server, table, f"many-{number}", 16)

    def _throughput(self, server: Server, table: Table, topic: str, partitions: int) -> None:
        create_topic(server, topic, partitions)
        touch_memory(self._directory, self._records * RECORD_BYTES)
        where = "1 partition" if partitions == 1 else f"{partitions} partitions"
        self._measured(
            server,
            table,
            f"produce, librdkafka, {where}",
            PRODUCE_CPU,
            lambda: load("produce_with_librdkafka", server, topic=topic, records=self._records),
        )
        self._measured(
            server,
            table,
            f"consume, librdkafka, {where}",
            CONSUME_CPU,
            lambda: load(
                "consume_with_librdkafka",
                server,
                topic=topic,
                partitions=partitions,
                records=self._records,
            ),
        )

    def _raw_throughput(self, server: Server, number: int, table: Table) -> None:
        topic = f"raw-{number}"
        create_topic(server, topic, 1)
        touch_memory(self._directory, self._records * RECORD_BYTES)
        self._measured(
            server,
            table,
            "produce, raw client",
            PRODUCE_CPU,
            lambda: load("produce_raw", server, topic=topic, in_flight=5, records=self._records),
        )
        self._measured(
            server,
            table,
            "consume, raw client",
            CONSUME_CPU,
            lambda: load("fetch_raw", server, topic=topic, records=self._records),
        )

    def _measured(
        self,
        server: Server,
        table: Table,
        name: str,
        cpu_bar: float,
        work: Callable[[], dict[str, float]],
    ) -> None:
        before = cpu_seconds(server.pid)
        outcome = work()
        used = cpu_seconds(server.pid) - before
        size = outcome["bytes"]
        rate = size / outcome["seconds"] / 1e6
        table.add(server, f"{name}", "MB/s", rate, MEGABYTES, more_is_better=True)
        table.add(server, f"{name}: CPU", "s/GB", used / size * 1e9, cpu_bar)

    def _request_rates(self, server: Server, number: int, table: Table) -> None:
        topic = f"small-{number}"
        create_topic(server, topic, 1)
        for name, connections, in_flight, bar in (
            ("100-byte produces, 1 connection, 1 at a time", 1, 1, 1.5),
            ("100-byte produces, 1 connection, 32 in flight", 1, 32, 5.0),
            ("100-byte produces, 50 connections, 8 in flight", 50, 8, 1.5),
        ):
            outcome = load(
                "request_rate",
                server,
                topic=topic,
                connections=connections,
                in_flight=in_flight,
                seconds=self._seconds,
            )
            rate = outcome["requests"] / outcome["seconds"]
            table.add(server, name, "/s", rate, bar, more_is_better=True)

    def _latency(self, server: Server, number: int, table: Table) -> None:
        topic = f"latency-{number}"
        create_topic(server, topic, 1)
        outcome = load(
            "latency",
            server,
            topic=topic,
            connections=LATENCY_CONNECTIONS,
            rate=LATENCY_RATE,
            seconds=self._seconds,
        )
        for name, figure in outcome.items():
            bar = 0.5 if name == "p99" else None
            table.add(server, f"latency at {LATENCY_RATE}/s, {name}", "us", figure, bar)


def load(name: str, server: Server, **options: Any) -> dict[str, float]:
    """Run a load in a process of its own; its outcome."""
    options["port"] = server.port
    command = [sys.executable, "-m", "benchmarks.serve_load", name, json.dumps(options)]
    finished = subprocess.run(
        command, stdout=subprocess.PIPE, timeout=LOAD_TIMEOUT_SECONDS, check=True
    )
    outcome: dict[str, float] = json.loads(finished.stdout)
    return outcome


def create_topic(server: Server, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 3})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)


def memory(table: Table, servers: Sequence[Server], when: str, bar: float) -> None:
    for server in servers:
        table.add(server, f"resident memory, {when}", "MB", resident_megabytes(server.pid), bar)
        zookeeper = resident_megabytes(server.zookeeper_pid)
        table.add(server, f"  its ZooKeeper, {when}", "MB", zookeeper)


@contextlib.contextmanager
def all_running(directory: Path, *, with_kafka: bool) -> Iterator[list[Server]]:
    servers: list[Server] = [Barnabas(directory / "barnabas")]
    if with_kafka:
        servers.append(Kafka(directory / "kafka"))
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(running(one)) for one in servers]


def start_times(table: Table, directory: Path, *, with_kafka: bool, rounds: int) -> None:
    """From the start of the ZooKeeper, or of what brings it along, to the first answer."""
    for number in range(rounds):
        servers: list[Server] = [Barnabas(directory / f"start-{number}")]
        if with_kafka:
            servers.append(Kafka(directory / f"start-kafka-{number}"))
        for server in servers:
            with running(server):
                table.add(server, "start to serving", "s", server.start_seconds, 0.5)


def touch_memory(directory: Path, size: int) -> None:
    """Have the machine find memory for so many bytes of page cache, just before they are written.

    A virtual machine that hands free memory back to its host gets it again page by page, at several
    times the cost of the writing itself. Whoever writes would be charged for that: a constant that
    has nothing to do with the broker, which on a machine in use finds pages that were used before.
    """
    chunk = bytes(1 << 20)
    path = directory / "touched"
    with path.open("wb", buffering=0) as file:
        for _ in range(int(size * MORE_THAN_NEEDED) // len(chunk)):
            file.write(chunk)
    path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--peer", choices=["kafka"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each row of a rate")
    parser.add_argument("--megabytes", type=int, default=250, help="of each row of a throughput")
    options = parser.parse_args()
    table = Table()
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as name:
        directory, with_kafka = Path(name), options.peer == "kafka"
        size = options.megabytes * 1_000_000
        touch_memory(directory, size)
        kernel = kernel_cost(directory, size)
        start_times(table, directory, with_kafka=with_kafka, rounds=options.rounds)
        with all_running(directory, with_kafka=with_kafka) as servers:
            memory(table, servers, "idle", 0.2)
            bench = Bench(table, directory, options.seconds, options.megabytes)
            for number in range(options.rounds + 1):
                bench.round(servers, number, counts=number > 0)
            memory(table, servers, "loaded", 0.1)
            table.show(servers)
    print(f"(receiving, checksumming and writing alone: CPU {kernel:.2f} s/GB)")


if __name__ == "__main__":
    main()
