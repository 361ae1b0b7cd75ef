"""`barnabas dump-log` against Apache Kafka's DumpLogSegments, line for line.

On the logs that Kafka wrote the comparison is with the dump that is kept beside them; the rest runs
Kafka 2.5.1's own tool and is skipped where that cannot run.
"""

import gzip
import io
import re
import shutil
from collections import Counter
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from broker.cli import main
from broker.groups.record_formats import (
    GroupKey,
    GroupMember,
    GroupValue,
    OffsetKey,
    OffsetValue,
    encode_group_key,
    encode_group_value,
    encode_offset_key,
    encode_offset_value,
)
from broker.transactions.record_formats import (
    TransactionKey,
    TransactionState,
    TransactionTopic,
    TransactionValue,
    encode_key,
    encode_value,
)
from storage.log_config import LogConfig
from storage.records import BatchBuilder, Codec, ProducerInfo
from storage.records.layout import LENGTH_POSITION
from tests.support.apache_kafka import ApacheKafka, require_apache_kafka
from tests.unit.storage.support import NOW, make_batch, open_log

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
KAFKA = "2.5.1"
SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
SEGMENT = "00000000000000000000.log"
EVERYTHING = ("--deep-iteration", "--print-data-log")


class Dump(NamedTuple):
    output: str
    errors: str

    @property
    def lines(self) -> list[str]:
        return self.output.split("\n")

    @property
    def complaints(self) -> Counter[tuple[str, ...]]:
        """Complaints file by file: Kafka has files in the order of a hash table."""
        return sections(self.errors)


def sections(errors: str) -> Counter[tuple[str, ...]]:
    found: list[list[str]] = []
    for line in errors.splitlines():
        if not line.startswith((" ", "Indexed offset")):
            found.append([])
        found[-1].append(line)
    return Counter(map(tuple, found))


def ours(files: Iterable[Path], *options: str) -> Dump:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        assert main(["dump-log", "--files", ",".join(map(str, files)), *options]) == 0
    return Dump(out.getvalue(), err.getvalue())


def kafkas(kafka: ApacheKafka, files: Iterable[Path], *options: str) -> Dump:
    result = kafka.dump_log(files, *options)
    return Dump(result.output, result.errors)


def assert_alike(kafka: ApacheKafka, files: list[Path], *options: str) -> Dump:
    own = ours(files, *options)
    expected = kafkas(kafka, files, *options)
    assert own.lines == expected.lines
    assert own.complaints == expected.complaints
    return own


def files_below(directory: Path) -> list[Path]:
    return [path for path in sorted(directory.glob("*-*/*")) if path.suffix in SUFFIXES]


@pytest.fixture(scope="module")
def kafka() -> ApacheKafka:
    return require_apache_kafka(KAFKA)


def normalised(lines: Iterable[str]) -> list[str | list[str]]:
    """Lines with members and partitions in order; Kafka has them in that of a hash table."""
    return [
        sorted(re.split(r"[,\[\]{}]", line)) if "_metadata::" in line else line for line in lines
    ]


def test_logs_that_kafka_wrote_are_shown_as_kafka_shows_them() -> None:
    """The kept dump has the output and then the complaints of three runs, with relative names."""
    fixture = FIXTURES / f"kafka-{KAFKA}"
    data = fixture / "data"
    rest = gzip.decompress((fixture / "dump.txt.gz").read_bytes()).decode()
    for files, options in (
        (files_below(data), EVERYTHING),
        (sorted(data.glob("__consumer_offsets-*/*.log")), ("--offsets-decoder",)),
        (sorted(data.glob("__transaction_state-*/*.log")), ("--transaction-log-decoder",)),
    ):
        shown = Dump(*(text.replace(f"{data}/", "") for text in ours(files, *options)))
        lines = rest.split("\n")[: len(shown.lines) - 1]
        assert normalised(shown.lines[:-1]) == normalised(lines)
        errors, dumping, later = rest[len(shown.output) :].partition("Dumping ")
        assert shown.complaints == sections(errors)
        rest = dumping + later
    assert rest == ""


@pytest.mark.parametrize("release", ["2.5.1", "3.9.1"])
@pytest.mark.parametrize(
    "options", [(), EVERYTHING, ("--verify-index-only",), ("--index-sanity-check",)]
)
def test_each_option_shows_what_kafka_shows(
    kafka: ApacheKafka, tmp_path: Path, release: str, options: tuple[str, ...]
) -> None:
    data = tmp_path / "data"  # Kafka's tool opens some files for writing
    shutil.copytree(FIXTURES / f"kafka-{release}" / "data", data)
    assert_alike(kafka, files_below(data), *options)


def test_logs_of_the_engine_are_shown_as_kafka_shows_them_and_without_complaints(
    kafka: ApacheKafka, tmp_path: Path
) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=4000, index_interval_bytes=200))
    for number in range(60):
        codec = list(Codec)[number % len(Codec)]
        values = [b"%d" % n * (number % 7) for n in range(number % 5 + 1)]
        log.append_as_leader(make_batch(*values, codec=codec, timestamp=NOW + 10 * number), 3)
    log.close()
    shown = assert_alike(kafka, files_below(tmp_path), *EVERYTHING)
    assert shown.errors == ""


def test_an_open_segment_is_shown_as_kafka_shows_it(kafka: ApacheKafka, tmp_path: Path) -> None:
    """Its indexes are longer than their entries."""
    log = open_log(tmp_path, LogConfig(index_interval_bytes=200, segment_index_bytes=1200))
    for number in range(20):
        log.append_as_leader(make_batch(b"x" * 50, timestamp=NOW + number), 0)
    shown = assert_alike(kafka, files_below(tmp_path), *EVERYTHING)
    log.close()
    assert sum(line.startswith("offset: ") for line in shown.lines) > 5


def test_text_that_is_none_is_shown_as_kafka_shows_it(kafka: ApacheKafka, tmp_path: Path) -> None:
    """Every pair of bytes that may or may not begin a character, and what may follow them."""
    starts = (0x41, 0x80, 0xC1, 0xC3, 0xE0, 0xE2, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF)
    follow = (0x41, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xED)
    values = [
        bytes((first, second, third, 0x80, 0x41))[:length]
        for first in starts
        for second in follow
        for third in follow
        for length in (2, 3, 5)
    ]
    path = tmp_path / "topic-0" / SEGMENT
    path.parent.mkdir()
    path.write_bytes(make_batch(*values))
    assert_alike(kafka, [path], *EVERYTHING)


def headed_batch() -> bytearray:
    builder = BatchBuilder(base_offset=2**40, producer=ProducerInfo(7, 2, 2**31 - 2))
    builder.append(NOW, None, None, [("one", b"1"), ("", None)])
    builder.append(NOW - 5, b"", b"", [])
    builder.append(NOW, "k\u00e4y".encode(), b"a\nb", [("h\u00e4", b"")])
    return builder.build()


def test_damage_that_kafka_survives_is_shown_as_kafka_shows_it(
    kafka: ApacheKafka, tmp_path: Path
) -> None:
    wrong_crc = make_batch(b"one", b"two", base_offset=1)
    wrong_crc[-2] ^= 0x11  # in a value
    contents: dict[str, bytes | bytearray] = {
        "torn-0": make_batch(b"x") + make_batch(b"y", base_offset=1)[:-3],
        "barely-0": make_batch(b"x") + bytes(10),
        "crc-0": make_batch(b"x") + wrong_crc + make_batch(b"y", base_offset=9),
        "headers-0": headed_batch(),
        "overlong-0": make_batch(b"x") + _overlong(make_batch(b"y", base_offset=1)),
        "empty-0": b"",
    }
    files = []
    for name, content in contents.items():
        files.append(tmp_path / name / SEGMENT)
        files[-1].parent.mkdir()
        files[-1].write_bytes(content)
    shown = assert_alike(kafka, files, *EVERYTHING)
    assert sum("invalid bytes" in line for line in shown.lines) == 3
    assert sum("isvalid: false" in line for line in shown.lines) == 1


def _overlong(batch: bytearray) -> bytearray:
    batch[LENGTH_POSITION] = 0x70
    return batch


def write_records(path: Path, records: Iterable[tuple[bytes, bytes | None]]) -> Path:
    builder = BatchBuilder()
    for key, value in records:
        builder.append(NOW, key, value)
    path.parent.mkdir()
    path.write_bytes(builder.build())
    return path


def group_records() -> Iterable[tuple[bytes, bytes | None]]:
    offset_key = OffsetKey(group="g\u00e4", topic="t", partition=3)
    for version in range(4):
        key = encode_offset_key(offset_key, version % 2)
        for metadata in ("", 'm"\u0000'):
            value = OffsetValue(offset=2**40, metadata=metadata, commit_timestamp=NOW)
            yield key, encode_offset_value(value, version)
        yield key, None
    topics = bytes.fromhex("00000002 0001 74 00000002 00000000 00000003 0001 75 00000001 00000007")
    assignments = {
        "consumer": (b"\0\0" + topics + b"\xff" * 4, b"\0\1" + topics + b"\0\0\0\2\0\xab"),
        'co"n\x1fnect\u00e4': (b"", b"\0\x0f\x10"),
    }
    key = encode_group_key(GroupKey(group="g"))
    for version in range(4):
        for protocol_type, opaque in assignments.items():
            members = [
                GroupMember(
                    member_id=f"member-{number}",
                    client_host="/h",
                    subscription=bytes.fromhex("0000 00000000 ffffffff"),
                    assignment=assignment,
                )
                for number, assignment in enumerate(opaque * 3)
            ]
            group = GroupValue(
                protocol_type=protocol_type, generation=4, protocol="range", members=members
            )
            yield key, encode_group_value(group, version)
    yield key, encode_group_value(GroupValue())
    yield key, None


def transaction_records() -> Iterable[tuple[bytes, bytes | None]]:
    key = encode_key(TransactionKey(transactional_id="tx"))
    for state in TransactionState:
        topics = [
            TransactionTopic(topic="t", partitions=list(range(5))),
            TransactionTopic(topic="u", partitions=[]),
            TransactionTopic(topic="v", partitions=[9]),
        ]
        value = TransactionValue(
            producer_id=2**40,
            producer_epoch=3,
            timeout_ms=60_000,
            status=state,
            topics=None if state is TransactionState.EMPTY else topics,
            last_update_timestamp=NOW,
            start_timestamp=NOW - 1,
        )
        yield key, encode_value(value)
    yield key, None


def test_records_of_coordinators_in_all_versions_are_shown_as_kafka_shows_them(
    kafka: ApacheKafka, tmp_path: Path
) -> None:
    groups = write_records(tmp_path / "__consumer_offsets-0" / SEGMENT, group_records())
    transactions = write_records(
        tmp_path / "__transaction_state-0" / SEGMENT, transaction_records()
    )
    for path, option in (
        (groups, "--offsets-decoder"),
        (transactions, "--transaction-log-decoder"),
    ):
        own = ours([path], option)
        expected = kafkas(kafka, [path], option)
        assert normalised(own.lines) == normalised(expected.lines)
        assert (own.errors, expected.errors) == ("", "")
