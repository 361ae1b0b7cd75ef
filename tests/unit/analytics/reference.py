"""What a query should find: a plain list of what was written, filtered record by record."""

import json
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
)

from analytics.problems import DamagedLogError
from tests.unit.analytics.random_logs import RandomLog, Written
from tests.unit.analytics.random_queries import COLUMNS, Scene, as_moment


class QueryFails(Exception):
    """Options that ask for what is not there."""


def stable_end(made: Scene, log: RandomLog) -> int:
    is_committed = made.options["isolationLevel"] == "read_committed"
    return min(log.end_offset, log.last_stable_offset) if is_committed else log.end_offset


def found_at(made: Scene, log: RandomLog, timestamp: int) -> int | None:
    """The first record in the order of offsets that is that young, as ListOffsets finds it. A
    batch that cannot be opened may hold it."""
    for one in log.batches:
        if one.max_timestamp < timestamp or one.last_offset < made.log_start(log):
            continue
        if one.is_damaged:
            base = one.base_offset if one.magic == 2 else one.last_offset
            found = max(base, made.log_start(log))
            return found if found < stable_end(made, log) else None
        for record in one.records:
            if record.timestamp >= timestamp and record.offset >= made.log_start(log):
                return record.offset if record.offset < stable_end(made, log) else None
    return None


def given(made: Scene, log: RandomLog, side: str) -> tuple[int | None, int | None]:
    """The offset and the timestamp that the options name for one side of a log."""
    if f"{side}Timestamp" in made.options:
        return None, int(made.options[f"{side}Timestamp"])
    for name in (f"{side}OffsetsByTimestamp", f"{side}Offsets"):
        if name in made.options:
            value = json.loads(made.options[name])[log.topic][str(log.partition)]
            return (value, None) if name.endswith("Offsets") else (None, value)
    return None, None


def bounds_of(made: Scene, log: RandomLog) -> tuple[int, int]:
    is_strict = made.options["failOnDataLoss"] == "true"
    start = made.log_start(log)
    first, first_time = given(made, log, "starting")
    end, end_time = given(made, log, "ending")
    if first_time is not None:
        first = found_at(made, log, first_time)
        if first is None:
            if made.options["startingOffsetsByTimestampStrategy"] == "error":
                raise QueryFails("no such timestamp")
            first = stable_end(made, log)
    elif first in (None, -2):
        first = start
    elif first is not None and first < start:
        if is_strict:
            raise QueryFails("gone")
        first = start
    assert first is not None
    if end_time is not None:
        end = found_at(made, log, end_time)
    if end in (None, -1):
        return first, stable_end(made, log)
    assert end is not None
    if end > log.end_offset and is_strict:
        raise QueryFails("not there")
    if first > end and first > start:
        raise QueryFails("backwards")
    return first, min(end, stable_end(made, log))


def expected_rows(made: Scene) -> list[tuple[Any, ...]]:
    is_committed = made.options["isolationLevel"] == "read_committed"
    rows = []
    bounds = {id(log): bounds_of(made, log) for log in made.logs}
    for log in sorted(made.logs, key=lambda log: (log.topic, log.partition)):
        first, end = bounds[id(log)]
        for one in log.batches:
            if one.is_control or (is_committed and one.is_aborted):
                continue
            wanted = [record for record in one.records if first <= record.offset < end]
            wanted = [record for record in wanted if passes(made.filters, log, record)]
            if one.is_damaged:
                if wanted and made.options["onDamage"] == "fail":
                    raise DamagedLogError
                continue
            rows += [as_row(made, log, record) for record in wanted]
    return rows


def passes(filters: list[Filter], log: RandomLog, record: Written) -> bool:
    values = {
        "topic": log.topic,
        "partition": log.partition,
        "offset": record.offset,
        "timestamp": as_moment(record.timestamp),
    }
    return all(holds(one, values) for one in filters)


def holds(one: Any, values: dict[str, Any]) -> bool:
    found = values[one.attribute[0]]
    if isinstance(one, In):
        return found in one.value
    if isinstance(one, EqualTo):
        return bool(found == one.value)
    if isinstance(one, GreaterThan):
        return bool(found > one.value)
    if isinstance(one, GreaterThanOrEqual):
        return bool(found >= one.value)
    if isinstance(one, LessThan):
        return bool(found < one.value)
    return bool(found <= one.value)


def columns_of(made: Scene) -> list[str]:
    left_out = made.options.get("excludeColumns", "").split(",")
    if made.options["includeHeaders"] == "false":
        left_out.append("headers")
    return [name for name in COLUMNS if name not in left_out]


def as_row(made: Scene, log: RandomLog, record: Written) -> tuple[Any, ...]:
    headers = record.headers and [{"key": key, "value": value} for key, value in record.headers]
    values = {
        "key": record.key,
        "value": record.value,
        "topic": log.topic,
        "partition": log.partition,
        "offset": record.offset,
        "timestamp": as_moment(record.timestamp),
        "timestampType": record.timestamp_type,
        "headers": headers,
    }
    return tuple(values[name] for name in columns_of(made))
