"""The options of the sources, in the names and conventions of Spark's Kafka source.

Owns what an option may say and which of several wins. Must not know logs.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple

from analytics.errors import AnalysisError

EARLIEST: Final = -2
_LARGEST: Final = (1 << 63) - 1
LATEST: Final = -1

COLUMNS: Final = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key:string,value:binary>>",
}

INTERNAL_TOPICS: Final = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"}
)

_ROWS_PER_ARROW_BATCH: Final = 16 * 1024
_BYTES_PER_ARROW_BATCH: Final = 2 * 1024 * 1024
_LARGEST_ARROW_BATCH: Final = 1 << 30
_DURATION: Final = re.compile(r"\s*(\d+)\s*(ms|s|m|min|h|d)?\s*")
_DURATION_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000}
_DURATION_MS["d"] = 24 * _DURATION_MS["h"]

TopicPartition = tuple[str, int]


class TaskBytes(NamedTuple):
    """How much of the files one task reads. A task costs Spark some 50 ms, which is worth the
    time of many megabytes; with more to read than the cores' shares, tasks are still bounded."""

    least: int
    most: int


RECORD_TASKS: Final = TaskBytes(64 << 20, 256 << 20)


class OptionError(AnalysisError):
    """An option that says nothing, or what cannot be."""


class Isolation(StrEnum):
    UNCOMMITTED = "read_uncommitted"
    COMMITTED = "read_committed"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which partitions are read; with none of its fields, all."""

    topics: frozenset[str] | None = None
    pattern: str | None = None
    partitions: frozenset[TopicPartition] | None = None

    def includes(self, topic: str, partition: int) -> bool:
        if self.topics is not None:
            return topic in self.topics
        if self.partitions is not None:
            return (topic, partition) in self.partitions
        if self.pattern is not None:  # as Spark has it: any part of a name, and no internal topic
            return topic not in INTERNAL_TOPICS and bool(re.search(self.pattern, topic))
        return True


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of what is read: an offset for all partitions (EARLIEST or LATEST) or for each, or
    a timestamp for all or for each."""

    option: str
    offset: int | None = None
    offsets: Mapping[TopicPartition, int] | None = None
    timestamp: int | None = None
    timestamps: Mapping[TopicPartition, int] | None = None
    is_latest_if_none: bool = False  # where no record has such a timestamp


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """All options of a source, checked."""

    directories: tuple[str, ...]
    selection: Selection
    starting: Bound
    ending: Bound
    isolation: Isolation
    fails_on_data_loss: bool
    skips_damage: bool
    columns: tuple[str, ...]
    checks_crc: bool
    narrows_by_filters: bool
    rows_per_arrow_batch: int
    bytes_per_arrow_batch: int
    task_bytes: TaskBytes
    min_tasks: int
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int


def parse_options(
    options: Mapping[str, str], *, is_streaming: bool = False, task_bytes: TaskBytes = RECORD_TASKS
) -> SourceOptions:
    """Raises OptionError for what an option cannot mean."""
    given = _Given(options)
    given.check_trigger_limits()
    bytes_per_task = given.number("maxBytesPerTask")
    isolation = given.text("isolationLevel") or given.text("kafka.isolation.level")
    return SourceOptions(
        directories=given.directories(),
        selection=given.selection(),
        starting=given.starting(is_streaming),
        ending=given.ending(is_streaming),
        isolation=_choice("isolationLevel", isolation or "read_uncommitted", Isolation),
        fails_on_data_loss=given.flag("failOnDataLoss", default=True),
        skips_damage=given.one_of("onDamage", "fail", "skip") == "skip",
        columns=given.columns(),
        checks_crc=given.flag("checkCrc", default=False),
        narrows_by_filters=given.flag("pushDownPredicate", default=False),
        rows_per_arrow_batch=given.number("maxRowsPerArrowBatch") or _ROWS_PER_ARROW_BATCH,
        bytes_per_arrow_batch=given.bytes_per_arrow_batch(),
        task_bytes=TaskBytes(bytes_per_task, bytes_per_task) if bytes_per_task else task_bytes,
        min_tasks=given.number("minPartitions") or 1,
        max_offsets_per_trigger=given.number("maxOffsetsPerTrigger"),
        min_offsets_per_trigger=given.number("minOffsetsPerTrigger"),
        max_trigger_delay_ms=given.duration_ms("maxTriggerDelay", "15m"),
    )


def record_columns(options: Mapping[str, str]) -> tuple[str, ...]:
    """The columns of the record table that these options leave."""
    return _Given(options).columns()


class _Given:
    """What the user said, by name, in any case of letters."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = {name.lower(): value for name, value in options.items()}

    def text(self, name: str) -> str | None:
        value = self._options.get(name.lower())
        return None if value is None else value.strip()

    def number(self, name: str) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        if not text.isdecimal() or int(text) == 0:
            raise OptionError(f"{name}: {text!r} is not a number above 0")
        return int(text)

    def bytes_per_arrow_batch(self) -> int:
        """Arrow counts the bytes of a column in 32 bits."""
        name = "maxBytesPerArrowBatch"
        wanted = self.number(name) or _BYTES_PER_ARROW_BATCH
        if wanted > _LARGEST_ARROW_BATCH:
            raise OptionError(f"{name}: {wanted} is more than the most, {_LARGEST_ARROW_BATCH}")
        return wanted

    def flag(self, name: str, *, default: bool) -> bool:
        text = (self.text(name) or str(default)).lower()
        if text not in ("true", "false"):
            raise OptionError(f"{name}: {text!r} is neither true nor false")
        return text == "true"

    def duration_ms(self, name: str, default: str) -> int:
        text = self.text(name) or default
        match = _DURATION.fullmatch(text)
        if match is None:
            raise OptionError(f"{name}: {text!r} is not a duration such as 30s or 15m")
        return int(match[1]) * _DURATION_MS[match[2] or "ms"]

    def one_of(self, name: str, default: str, other: str) -> str:
        text = (self.text(name) or default).lower()
        if text not in (default, other):
            raise OptionError(f"{name}: {text!r} is neither {default} nor {other}")
        return text

    def check_trigger_limits(self) -> None:
        least, most = self.number("minOffsetsPerTrigger"), self.number("maxOffsetsPerTrigger")
        if least is not None and most is not None and least > most:
            raise OptionError(f"minOffsetsPerTrigger: {least} is more than the most, {most}")

    def directories(self) -> tuple[str, ...]:
        paths = self.text("paths")
        if paths:
            return tuple(str(path) for path in _json("paths", paths))
        path = self.text("path")
        if not path:
            raise OptionError("name a log directory: .load(DIR)")
        return tuple(part.strip() for part in path.split(",") if part.strip())

    def columns(self) -> tuple[str, ...]:
        excluded = {
            name.strip().lower() for name in (self.text("excludeColumns") or "").split(",")
        } - {""}
        unknown = excluded - {name.lower() for name in COLUMNS}
        if unknown:
            raise OptionError(f"excludeColumns: there is no column {', '.join(sorted(unknown))}")
        if not self.flag("includeHeaders", default=False):
            excluded.add("headers")
        left = tuple(name for name in COLUMNS if name.lower() not in excluded)
        if not left:
            raise OptionError("excludeColumns: no column is left")
        return left

    def selection(self) -> Selection:
        names = ("subscribe", "subscribePattern", "assign")
        named = [name for name in names if self.text(name) is not None]
        if len(named) > 1:
            raise OptionError(f"{' and '.join(named)}: only one of them can be given")
        if (topics := self.text("subscribe")) is not None:
            names_of_topics = frozenset(topic.strip() for topic in topics.split(",")) - {""}
            if not names_of_topics:
                raise OptionError("subscribe: name at least one topic")
            return Selection(topics=names_of_topics)
        if (pattern := self.text("subscribePattern")) is not None:
            if not pattern:
                raise OptionError("subscribePattern: the pattern is empty")
            try:
                re.compile(pattern)
            except re.error as error:
                raise OptionError(f"subscribePattern: {error} (in Python's syntax)") from None
            return Selection(pattern=pattern)
        if (assigned := self.text("assign")) is not None:
            return Selection(partitions=_assigned(assigned))
        return Selection()

    def starting(self, is_streaming: bool) -> Bound:
        default = "latest" if is_streaming else "earliest"
        bound = self._bound("starting", default)
        if not is_streaming and _names(bound, LATEST):
            raise OptionError("startingOffsets: a batch query cannot start at the latest offsets")
        strategy = self.one_of("startingOffsetsByTimestampStrategy", "error", "latest")
        return replace(bound, is_latest_if_none=strategy == "latest")

    def ending(self, is_streaming: bool) -> Bound:
        names = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
        given = [name for name in names if self.text(name) is not None]
        if is_streaming and given:
            raise OptionError(f"{given[0]}: a streaming query has no end")
        bound = self._bound("ending", "latest")
        if _names(bound, EARLIEST):
            raise OptionError("endingOffsets: a query cannot end at the earliest offsets")
        return bound

    def _bound(self, side: str, default: str) -> Bound:
        """A timestamp for all wins over timestamps for each, and those over offsets."""
        if (text := self.text(f"{side}Timestamp")) is not None:
            return Bound(f"{side}Timestamp", timestamp=_timestamp(f"{side}Timestamp", text))
        name = f"{side}OffsetsByTimestamp"
        if (text := self.text(name)) is not None:
            timestamps = _by_partition(name, text)
            if any(value < 0 for value in timestamps.values()):
                raise OptionError(f"{name}: timestamps are milliseconds since 1970")
            return Bound(name, timestamps=timestamps)
        name = f"{side}Offsets"
        text = self.text(name) or default
        if text.lower() in ("earliest", "latest"):
            return Bound(name, offset=EARLIEST if text.lower() == "earliest" else LATEST)
        offsets = _by_partition(name, text)
        if any(value < EARLIEST for value in offsets.values()):
            raise OptionError(f"{name}: offsets begin at 0; -1 is the latest, -2 the earliest")
        return Bound(name, offsets=offsets)


def _names(bound: Bound, offset: int) -> bool:
    return bound.offset == offset or offset in (bound.offsets or {}).values()


def _choice(name: str, text: str, choices: type[Isolation]) -> Isolation:
    try:
        return choices(text.lower())
    except ValueError:
        raise OptionError(f"{name}: {text!r} is none of {', '.join(choices)}") from None


def _timestamp(name: str, text: str) -> int:
    if not text.isdecimal():
        raise OptionError(f"{name}: {text!r} is not a number of milliseconds since 1970")
    return int(text)


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise OptionError(f"{name}: {text!r} is not JSON: {error}") from None


def _assigned(text: str) -> frozenset[TopicPartition]:
    example = '{"topicA": [0, 1]}'
    parsed = _json("assign", text)
    try:
        found = frozenset(
            (str(topic), _whole(number)) for topic, numbers in parsed.items() for number in numbers
        )
    except (AttributeError, TypeError, ValueError):
        raise OptionError(f"assign: {text!r} is not of the form {example}") from None
    if not found:
        raise OptionError("assign: name at least one partition")
    return found


def _by_partition(name: str, text: str) -> dict[TopicPartition, int]:
    example = '{"topicA": {"0": 23}}'
    parsed = _json(name, text)
    try:
        return {
            (str(topic), int(number)): _whole(value)
            for topic, numbers in parsed.items()
            for number, value in numbers.items()
        }
    except (AttributeError, TypeError, ValueError):
        raise OptionError(f"{name}: {text!r} is not of the form {example}") from None


def _whole(number: Any) -> int:
    """A number of JSON that is a whole one; int() would take half of one, and truth as well."""
    if isinstance(number, int) and not isinstance(number, bool) and abs(number) <= _LARGEST:
        return number
    raise ValueError
