"""The rules that a topic's settings make for its records."""

import pytest

from storage.log_config import LogConfig
from storage.record_checks import RecordRules
from storage.records import Codec, TimestampType
from storage.records.layout import CONTROL_FLAG


def test_default_settings_leave_batches_unopened() -> None:
    rules = RecordRules.of(LogConfig())
    assert rules == RecordRules()
    assert not rules.looks_into_records
    assert rules.as_is_from_client == set(Codec)
    assert rules.as_is_from_coordinator == set(Codec) | {CONTROL_FLAG}


@pytest.mark.parametrize(
    "config",
    [
        LogConfig(cleanup_policy=frozenset({"compact"})),
        LogConfig(cleanup_policy=frozenset({"compact", "delete"})),
        LogConfig(message_timestamp_difference_max_ms=1000),
    ],
)
def test_keys_and_timestamps_are_looked_at_where_settings_ask_for_it(config: LogConfig) -> None:
    assert RecordRules.of(config).looks_into_records


def test_full_validation_can_be_switched_on() -> None:
    assert RecordRules.of(LogConfig(), validate_records=True).looks_into_records


def test_log_append_time_needs_no_look_at_producers_timestamps() -> None:
    config = LogConfig(
        message_timestamp_type="LogAppendTime", message_timestamp_difference_max_ms=1000
    )
    rules = RecordRules.of(config)
    assert rules.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert not rules.looks_into_records


@pytest.mark.parametrize(
    ("setting", "codec"),
    [
        ("producer", None),
        ("uncompressed", Codec.NONE),
        ("gzip", Codec.GZIP),
        ("snappy", Codec.SNAPPY),
        ("lz4", Codec.LZ4),
        ("zstd", Codec.ZSTD),
    ],
)
def test_compression_type_names_the_codecs_that_are_stored_as_they_come(
    setting: str, codec: Codec | None
) -> None:
    rules = RecordRules.of(LogConfig(compression_type=setting))
    assert rules.codec is codec
    assert rules.as_is_from_client == (set(Codec) if codec is None else {codec})


@pytest.mark.parametrize(("version", "magic"), [("0.9.0", 0), ("0.10.2", 1), ("2.5-IV0", 2)])
def test_only_the_latest_message_format_stores_batches_as_they_come(
    version: str, magic: int
) -> None:
    rules = RecordRules.of(LogConfig(message_format_version=version))
    assert rules.magic == magic
    assert bool(rules.as_is_from_client) is (magic == 2)
    assert bool(rules.as_is_from_coordinator) is (magic == 2)
