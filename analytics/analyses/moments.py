"""Moments as the analyses reckon with them: in UTC, whatever the session's time zone is."""

from datetime import UTC
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as f

from analytics.timestamps import CREDIBLE_AHEAD, EARLIEST_CREDIBLE, LATEST_TIMESTAMP_MS

_HOUR: Final = 3600
_DAY: Final = 24 * _HOUR
_FIRST_WEEKDAY: Final = 3  # 1970 began on a Thursday; Monday is 0


def known(moment: Column) -> Column:
    """A record's timestamp where it is one. Records of the oldest format have none, for which
    Spark's Kafka source shows one before 1970; what lies behind the year 9999 is none either."""
    return f.when(f.unix_millis(moment).between(0, LATEST_TIMESTAMP_MS), moment)


def credible(moment: Column) -> Column:
    """Whether a clock that is right may have shown it by now."""
    earliest = f.lit(EARLIEST_CREDIBLE.replace(tzinfo=UTC))
    return moment.between(earliest, f.current_timestamp() + f.lit(CREDIBLE_AHEAD))


def seconds(moment: Column) -> Column:
    """Since 1970, with the milliseconds as a fraction."""
    return f.unix_millis(moment) / 1000


def seconds_between(first: Column, last: Column) -> Column:
    return (f.unix_millis(last) - f.unix_millis(first)) / 1000


def utc_hour(moment: Column) -> Column:
    """The beginning of the hour that a moment lies in."""
    whole = f.unix_seconds(moment)
    return f.timestamp_seconds(whole - f.pmod(whole, f.lit(_HOUR)))


def hour_of_day(moment: Column) -> Column:
    into_day = f.pmod(f.unix_seconds(moment), f.lit(_DAY))
    return f.floor(into_day / _HOUR).cast("int")


def weekday(moment: Column) -> Column:
    """Monday is 0."""
    days = f.floor(f.unix_seconds(moment) / _DAY)
    return f.pmod(days + _FIRST_WEEKDAY, f.lit(7)).cast("int")
