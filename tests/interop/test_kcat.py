"""kcat, the command-line client on librdkafka; it sets no timestamps, so it takes the present."""

import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.interop.records import PARTITIONS, RECORDS, Content, Sample, exchange

TIMEOUT_SECONDS = 60
HEADERS = (("client", b"kcat"), ("purpose", b"test"))
PRESENT = 0

pytestmark = pytest.mark.skipif(
    shutil.which("kcat") is None, reason="kcat is not installed (Debian's package kcat)"
)


def run_kcat(*arguments: str, text: str = "") -> str:
    command = ["kcat", "-m", str(TIMEOUT_SECONDS), *arguments]
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Kcat:
    def __init__(self) -> None:
        self._started_ms = int(time.time() * 1000)

    def create_topic(self, bootstrap: str, topic: str) -> None:
        """kcat cannot create; asking for the metadata of a topic makes the broker do it."""
        for _ in range(50):
            if f"{PARTITIONS} partitions" in run_kcat("-b", bootstrap, "-L", "-t", topic):
                return
            time.sleep(0.1)
        raise AssertionError(f"{topic} was not created")

    def produce(self, bootstrap: str, topic: str, codec: str, content: Content) -> None:
        headers = [part for name, value in HEADERS for part in ("-H", f"{name}={value.decode()}")]
        for partition, samples in enumerate(content):
            text = "".join(f"{as_text(one.key)}\t{as_text(one.value)}\n" for one in samples)
            where = ("-b", bootstrap, "-t", topic, "-p", str(partition))
            run_kcat("-P", *where, "-z", codec, "-K", "\t", *headers, text=text)

    def consume(self, bootstrap: str, topic: str, counts: Sequence[int]) -> Content:
        content: Content = []
        for partition, count in enumerate(counts):
            where = ("-b", bootstrap, "-t", topic, "-p", str(partition), "-o", "beginning")
            printed = run_kcat("-C", "-q", "-e", *where, "-c", str(count), "-f", "%k\t%s\t%h\t%T\n")
            content.append([self._parse(line) for line in printed.splitlines()])
        return content

    def _parse(self, line: str) -> Sample:
        key, value, headers, timestamp = line.split("\t")
        pairs = (header.partition("=") for header in headers.split(","))
        assert self._started_ms <= int(timestamp) <= time.time() * 1000
        named = tuple((name, text.encode()) for name, _, text in pairs)
        return Sample(key.encode(), value.encode(), named, PRESENT)


def as_text(data: bytes | None) -> str:
    assert data is not None
    return data.decode()


def make_lines(seed: int) -> Content:
    content: Content = [[] for _ in range(PARTITIONS)]
    for number in range(RECORDS):
        key, value = b"key %d" % (number % 100), b"codec %d record %d" % (seed, number)
        content[number % PARTITIONS].append(Sample(key, value, HEADERS, PRESENT))
    return content


def test_every_codec_survives_restart_and_kill(tmp_path: Path) -> None:
    exchange(Kcat(), tmp_path, make_lines, {"num.partitions": str(PARTITIONS)})
