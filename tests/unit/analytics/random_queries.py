"""Random queries of random logs with random damage."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from tests.unit.analytics.log_damage import add_zeros, damage_a_batch, spoil_indexes, tear_tail
from tests.unit.analytics.random_logs import LogWriter, RandomLog

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")


@dataclass(slots=True)
class Scene:
    """Some logs in a directory, what was done to their files, and a query."""

    directory: Path
    logs: list[RandomLog]
    log_starts: dict[tuple[str, int], int] = field(default_factory=dict)
    torn: dict[tuple[str, int], int] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    filters: list[Filter] = field(default_factory=list)

    def log_start(self, log: RandomLog) -> int:
        return self.log_starts.get((log.topic, log.partition), 0)


def scene(random: Random, directory: Path) -> Scene:
    names = random.sample([("a", 0), ("a", 1), ("b", 0), ("b-c.d", 12)], random.choice((1, 1, 2)))
    logs = [LogWriter(random, directory, *name).write(random.choice((3, 20, 50))) for name in names]
    made = Scene(directory, logs)
    for log in logs:
        is_closed = random.random() < 0.5
        if is_closed:
            log.log.close()
        if random.random() < 0.5:
            spoil_indexes(random, log)
        if random.random() < 0.3:
            damage_a_batch(random, log)
        if is_closed and random.random() < 0.4:
            if random.random() < 0.5:
                made.torn[log.topic, log.partition] = tear_tail(random, log)
            else:
                add_zeros(random, log)
        if random.random() < 0.2:
            made.log_starts[log.topic, log.partition] = random.randrange(log.end_offset + 1)
        if random.random() < 0.2:
            for snapshot in log.directory.glob("*.snapshot"):
                snapshot.unlink()
    lines = [f"{topic} {number} {start}\n" for (topic, number), start in made.log_starts.items()]
    (directory / "log-start-offset-checkpoint").write_text(f"0\n{len(lines)}\n{''.join(lines)}")
    made.options = options(random, made)
    made.filters = filters(random, made) if random.random() < 0.3 else []
    return made


def options(random: Random, made: Scene) -> dict[str, str]:
    found = {"path": str(made.directory), "includeHeaders": random.choice(("true", "false"))}
    found["isolationLevel"] = random.choice(("read_committed", "read_uncommitted"))
    found["onDamage"] = random.choice(("skip", "skip", "fail"))
    found["failOnDataLoss"] = random.choice(("true", "false"))
    found["startingOffsetsByTimestampStrategy"] = random.choice(("error", "latest"))
    found["maxBytesPerTask"] = random.choice(("1", "300", "3000", "1000000"))
    found["maxRowsPerArrowBatch"] = random.choice(("1", "3", "1000"))
    found["maxBytesPerArrowBatch"] = random.choice(("1", "200", "100000"))
    if random.random() < 0.3:
        left_out = random.sample(COLUMNS, random.randrange(1, 6))
        found["excludeColumns"] = ",".join({*left_out} - {"offset", "topic", "partition"})
    if random.random() < 0.7:
        found.update(bound(random, made, "starting"))
    if random.random() < 0.7:
        found.update(bound(random, made, "ending"))
    return found


def bound(random: Random, made: Scene, side: str) -> dict[str, str]:
    def by_partition(value_of: Any) -> str:
        values: dict[str, dict[str, int]] = {}
        for log in made.logs:
            values.setdefault(log.topic, {})[str(log.partition)] = value_of(log)
        return json.dumps(values)

    def some_time(log: RandomLog) -> int:
        time = random.choice(log.batches).max_timestamp + random.choice((0, 0, 1, -1, 500))
        return max(0, time)

    match random.randrange(3):
        case 0:
            return {
                f"{side}Offsets": by_partition(
                    lambda log: random.choice(
                        (-2 if side == "starting" else -1, random.randrange(log.end_offset + 2))
                    )
                )
            }
        case 1:
            return {f"{side}Timestamp": str(some_time(random.choice(made.logs)))}
        case _:
            return {f"{side}OffsetsByTimestamp": by_partition(some_time)}


def filters(random: Random, made: Scene) -> list[Filter]:
    log = random.choice(made.logs)
    offset = random.randrange(log.end_offset + 1)
    moment = as_moment(random.choice(log.batches).max_timestamp)
    kind = random.choice((EqualTo, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual))
    return random.sample(
        [
            kind(("offset",), offset),
            kind(("timestamp",), moment),
            In(("offset",), (offset, offset + 7, None)),
            EqualTo(("topic",), log.topic),
            In(("partition",), (log.partition, 99)),
            GreaterThanOrEqual(("offset",), offset // 2),
        ],
        random.choice((1, 2)),
    )


def as_moment(timestamp: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=timestamp)
