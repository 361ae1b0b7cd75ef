"""Which settings change at run time, at which level, and what the layers make together."""

import pytest

from broker.settings import SettingsError
from broker.settings.dynamic import (
    DYNAMIC_SETTINGS,
    check_names,
    check_value,
    is_sensitive,
    is_stored_password,
    overlay,
    synonyms_of,
)
from broker.settings.sources import Given, Source

STORE = "listener.name.external.ssl.keystore.location"


def test_what_kafka_changes_at_run_time_can_be_changed() -> None:
    assert len(DYNAMIC_SETTINGS) == 71
    assert "log.message.format.version" not in DYNAMIC_SETTINGS


@pytest.mark.parametrize(
    ("name", "per_broker", "cluster"),
    [
        ("num.io.threads", True, True),
        ("message.max.bytes", True, True),
        ("leader.replication.throttled.rate", True, True),
        ("max.connections", True, True),
        ("listener.name.external.max.connections", True, True),
        ("some.plugins.key", True, True),
        ("listeners", True, False),
        (STORE, True, False),
        ("listener.name.external.scram-sha-256.sasl.jaas.config", True, False),
        ("ssl.keystore.location", False, False),
        ("num.partitions", False, False),
        ("log.retention.hours", False, False),
        ("log.message.format.version", False, False),
    ],
)
def test_a_name_is_accepted_at_its_levels_only(name: str, per_broker: bool, cluster: bool) -> None:
    assert is_accepted(name, per_broker=True) == per_broker
    assert is_accepted(name, per_broker=False) == cluster


def is_accepted(name: str, *, per_broker: bool) -> bool:
    try:
        check_names([name], per_broker=per_broker)
    except SettingsError:
        return False
    return True


def test_a_value_is_checked_also_for_a_single_listener() -> None:
    check_value("listener.name.a.max.connections", "5")
    check_value("some.plugins.key", "anything")
    with pytest.raises(SettingsError, match=r"^listener.name.a.max.connections: -1: must be at"):
        check_value("listener.name.a.max.connections", "-1")
    with pytest.raises(SettingsError, match=r"^leader.replication.throttled.rate: fast: must be"):
        check_value("leader.replication.throttled.rate", "fast")


def test_what_is_secret_or_not_known_is_not_shown() -> None:
    assert is_sensitive("ssl.key.password")
    assert is_sensitive("listener.name.a.ssl.key.password")
    assert is_sensitive("listener.name.a.plain.sasl.jaas.config")
    assert is_sensitive("some.plugins.key")
    assert not is_sensitive(STORE)
    assert not is_sensitive("leader.replication.throttled.rate")


def test_passwords_are_known_by_their_endings() -> None:
    assert is_stored_password("listener.name.a.ssl.truststore.password")
    assert is_stored_password("listener.name.a.gssapi.sasl.jaas.config")
    assert not is_stored_password("delegation.token.master.key")
    assert not is_stored_password(STORE)


def test_synonyms_are_named_the_stronger_first() -> None:
    assert synonyms_of("log.retention.ms")[-1] == "log.retention.hours"
    assert synonyms_of("log.flush.scheduler.interval.ms") == ("log.flush.scheduler.interval.ms",)
    assert synonyms_of(STORE) == (STORE, "ssl.keystore.location")
    assert synonyms_of("broker.id") == ("broker.id",)


def test_each_layer_covers_the_one_below_and_its_synonyms() -> None:
    static = {
        name: Given(text, Source.FILE, "file")
        for name, text in {"log.retention.hours": "1", "num.io.threads": "2", "port": "3"}.items()
    }
    defaults = {"log.retention.ms": "10", "num.io.threads": "4"}
    own = {"num.io.threads": "5"}
    result = {name: one.text for name, one in overlay(static, defaults, own).items()}
    assert result == {"log.retention.ms": "10", "num.io.threads": "5", "port": "3"}
    assert overlay(static, defaults, own)["num.io.threads"].source is Source.DYNAMIC_BROKER
    assert overlay(static, {}, {}) == static
