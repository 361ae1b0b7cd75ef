import pytest

from broker.settings import SettingsError, TopicSettings, load_settings


def topic_with(*broker: str, **topic: str) -> TopicSettings:
    overrides = {name.replace("_", "."): value for name, value in topic.items()}
    return TopicSettings(load_settings(None, broker, {}), overrides)


def test_a_topic_has_the_brokers_values_where_it_says_nothing() -> None:
    topic = topic_with("log.segment.bytes=2000", "log.retention.minutes=1", "log.roll.hours=2")
    assert topic.segment_bytes == 2000
    assert topic.retention_ms == 60_000
    assert topic.segment_ms == 2 * 3600 * 1000
    assert topic["cleanup.policy"] == ("delete",)
    assert topic.overrides == {}


def test_a_topics_own_value_wins() -> None:
    topic = topic_with("log.segment.bytes=2000", segment_bytes="3000", cleanup_policy="compact")
    assert topic.segment_bytes == 3000
    assert topic.cleanup_policy == ("compact",)
    assert topic.overrides == {"segment.bytes": "3000", "cleanup.policy": "compact"}


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        ({"segment_ms": "0"}, "segment.ms: 0: must be at least 1"),
        ({"min_cleanable_dirty_ratio": "2"}, "must be between 0 and 1"),
        ({"compression_type": "ZSTD"}, "compression.type: ZSTD: must be one of"),
        ({"log_dirs": "a"}, "log.dirs: unknown topic setting"),
        ({"leader_replication_throttled_replicas": "x"}, r"must be \* or a list of partition:br"),
        (
            {"min_compaction_lag_ms": "5", "max_compaction_lag_ms": "4"},
            "min.compaction.lag.ms: 5: must not exceed max.compaction.lag.ms, 4",
        ),
    ],
)
def test_a_wrong_topic_setting_is_refused(overrides: dict[str, str], line: str) -> None:
    with pytest.raises(SettingsError, match=line):
        topic_with(**overrides)


@pytest.mark.parametrize("replicas", ["*", "0:1,1:2", ""])
def test_throttled_replicas_are_all_or_a_list_of_pairs(replicas: str) -> None:
    topic = topic_with(leader_replication_throttled_replicas=replicas)
    assert topic.leader_replication_throttled_replicas == tuple(r for r in replicas.split(",") if r)
