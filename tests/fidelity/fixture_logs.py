"""The logs in tests/fixtures: where they are and what Kafka said of them; copies and reads."""

import base64
import gzip
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from storage.log_config import LogConfig
from storage.records import Batch, TimestampType, is_intact, iter_batches, iter_records
from tests.fidelity.consumed import ConsumedRecord, read_consumed
from tests.fidelity.dumped import DumpedFile, parse_dump
from tests.fidelity.workload import Workload

FIXTURES: Final = Path(__file__).resolve().parents[1] / "fixtures"
RELEASES: Final = ("2.5.1", "3.9.1")
TIMESTAMP_TYPE_NAMES: Final = {
    TimestampType.NO_TIMESTAMP_TYPE: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}


@dataclass(frozen=True, slots=True)
class FixtureLog:
    """A partition's directory that Kafka wrote."""

    release: str
    name: str

    def __str__(self) -> str:
        return f"{self.release}:{self.name}"

    @property
    def path(self) -> Path:
        return data_directory(self.release) / self.name

    @property
    def topic(self) -> str:
        return self.name.rpartition("-")[0]

    @property
    def config(self) -> LogConfig:
        return topic_configs(self.release).get(self.topic, INTERNAL_TOPIC)

    def files(self, suffix: str) -> list[Path]:
        return sorted(self.path.glob(f"*{suffix}"))

    def dumped(self, path: Path) -> DumpedFile:
        """What DumpLogSegments said of a file in this directory."""
        return dump_of(self.release)[f"{self.name}/{path.name}"]

    def consumed(self, isolation: str = "read_uncommitted") -> list[ConsumedRecord]:
        return _consumed(self.release, isolation)[self.name]


# What the broker that made the fixtures gives to topics of its own.
INTERNAL_TOPIC: Final = LogConfig(
    cleanup_policy=frozenset({"compact"}), segment_bytes=4000, index_interval_bytes=300
)


def data_directory(release: str) -> Path:
    return FIXTURES / f"kafka-{release}" / "data"


def time_of_making(release: str) -> int:
    """When the fixtures were made, in milliseconds: no producer has expired at that time."""
    return max(r.timestamp for r in _consumed(release, "read_uncommitted")["__transaction_state-0"])


def fixture_logs() -> list[FixtureLog]:
    return [
        FixtureLog(release, path.name)
        for release in RELEASES
        for path in sorted(data_directory(release).iterdir())
        if path.is_dir()
    ]


def copy_data(release: str, target: Path) -> Path:
    """A copy of a whole log directory that a test may change."""
    shutil.copytree(data_directory(release), target)
    return target


@cache
def topic_configs(release: str) -> dict[str, LogConfig]:
    """The settings that each topic of the fixtures was last given."""
    workload = Workload(supports_old_formats=release == "2.5.1")
    configs = {name: _log_config(settings) for name, settings in workload.topics().items()}
    if "upgraded" in configs:
        configs["upgraded"] = _log_config(
            {**workload.topics()["upgraded"], "message.format.version": "2.5"}
        )
    return configs


@cache
def dump_of(release: str) -> dict[str, DumpedFile]:
    data = (FIXTURES / f"kafka-{release}" / "dump.txt.gz").read_bytes()
    return parse_dump(gzip.decompress(data).decode(errors="surrogateescape"))


@cache
def recovered_by_kafka(release: str) -> dict[str, bytes]:
    """The files that Kafka made anew after a crash that left the records only, by their names."""
    data = (FIXTURES / f"kafka-{release}" / "recovered.json.gz").read_bytes()
    files: dict[str, str] = json.loads(gzip.decompress(data))
    return {name: base64.b64decode(content) for name, content in files.items()}


@cache
def _consumed(release: str, isolation: str) -> dict[str, list[ConsumedRecord]]:
    return read_consumed(FIXTURES / f"kafka-{release}" / f"{isolation}.json.gz")


def _log_config(settings: object) -> LogConfig:
    assert isinstance(settings, dict)
    values: dict[str, object] = {}
    for name, text in settings.items():
        field = name.replace(".", "_")
        default = getattr(LogConfig(), field)
        if field == "cleanup_policy":
            values[field] = frozenset(text.split(","))
        else:
            values[field] = type(default)(text)
    return LogConfig(**values)  # type: ignore[arg-type]


def batches_of(path: Path) -> list[Batch]:
    """All batches of a segment file, whose checksums hold and which fill the file."""
    data = path.read_bytes()
    batches = list(iter_batches(data))
    assert all(is_intact(batch) for batch in batches)
    assert sum(len(batch.data) for batch in batches) == len(data)
    return batches


def records_in(batches: list[Batch]) -> Iterator[ConsumedRecord]:
    """What a consumer sees of batches: all but control records."""
    for batch in batches:
        if batch.header.is_control:
            continue
        timestamp_type = TIMESTAMP_TYPE_NAMES[batch.header.timestamp_type]
        for record in iter_records(batch):
            yield ConsumedRecord(
                record.offset,
                record.timestamp,
                timestamp_type,
                record.key,
                record.value,
                record.headers,
            )
