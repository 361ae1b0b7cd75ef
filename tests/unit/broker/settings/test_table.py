"""The declared settings against the facts of Apache Kafka 2.5.1."""

from pathlib import Path

import pytest

from broker.settings import BROKER_SETTINGS, TOPIC_SETTINGS

FACTS = [
    line.split(" | ")
    for line in (Path(__file__).parent / "kafka_2_5_settings.txt").read_text().splitlines()
    if not line.startswith("#")
]


def shown(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def test_every_setting_of_kafka_is_declared_and_no_other() -> None:
    assert set(BROKER_SETTINGS) == {fact[0] for fact in FACTS}


@pytest.mark.parametrize(
    ("name", "kind", "default", "importance", "dynamic"), FACTS, ids=[fact[0] for fact in FACTS]
)
def test_a_declaration_agrees_with_kafka(
    name: str, kind: str, default: str, importance: str, dynamic: str
) -> None:
    setting = BROKER_SETTINGS[name]
    assert setting.kind.name == kind
    assert shown(setting.default) == default
    assert setting.importance.name == importance
    assert setting.dynamic.value == dynamic


def test_every_declaration_is_documented_in_one_line() -> None:
    for setting in BROKER_SETTINGS.values():
        assert setting.documentation.endswith("."), setting
        assert "\n" not in setting.documentation, setting


def test_every_default_passes_its_own_check() -> None:
    for setting in BROKER_SETTINGS.values():
        if setting.default is not None:
            assert setting.parse(shown(setting.default)) == setting.default, setting


def test_a_topic_setting_names_the_broker_setting_behind_it() -> None:
    behind = {
        name: setting.broker.name
        for name, setting in TOPIC_SETTINGS.items()
        if setting.broker is not None
    }
    assert behind["segment.ms"] == "log.roll.ms"
    assert behind["max.message.bytes"] == "message.max.bytes"
    assert len(behind) == 24
    assert set(TOPIC_SETTINGS) - set(behind) == {
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
    }
