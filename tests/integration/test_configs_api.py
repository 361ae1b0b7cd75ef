"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs, request by request."""

import json
import re

import pytest

from network.protocol import ErrorCode
from tests.support.api import new_topic, produce
from tests.support.broker import BrokerProcess
from tests.support.configs import (
    APPEND,
    BROKER,
    DELETE,
    LOGGER,
    SET,
    SUBTRACT,
    TOPIC,
    ask,
    change,
    entries,
    eventually,
    read_znode,
    replace,
)
from tests.support.raw_client import RawClient, make_batch

OK = (ErrorCode.NONE, None)
CONNECTING = re.compile(r"Connecting to zookeeper on (\S+)")


def stored(broker: BrokerProcess, path: str) -> dict[str, str]:
    connect = broker.wait_for_line(CONNECTING).group(1)
    content: dict[str, dict[str, str]] = json.loads(read_znode(connect, f"/config/{path}"))
    return content["config"]


def value(client: RawClient, kind: int, name: str, key: str) -> str | None:
    return entries(client, kind, name, key)[key].value


# -- describing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(3))
def test_topic_is_described_with_the_source_of_each_setting(
    client: RawClient, version: int
) -> None:
    topic = new_topic(client, retention_ms="60000")
    found = entries(client, TOPIC, topic, version=version)
    assert len(found) == 26
    assert found["retention.ms"].value == "60000"
    assert found["segment.bytes"].value == "100000"  # of the broker's command line
    assert found["cleanup.policy"].value == "delete"
    assert found["min.cleanable.dirty.ratio"].value == "0.5"
    assert found["preallocate"].value == "false"
    assert not any(one.read_only or one.is_sensitive for one in found.values())
    names = ("retention.ms", "segment.bytes", "cleanup.policy")
    if version == 0:
        assert [found[name].is_default for name in names] == [False, False, True]
    else:
        assert [found[name].config_source for name in names] == [1, 4, 5]


def test_synonyms_lead_from_the_topic_to_the_default(client: RawClient) -> None:
    topic = new_topic(client, segment_bytes="50000")
    found = entries(client, TOPIC, topic, "segment.bytes")["segment.bytes"]
    assert [(one.name, one.value, one.source) for one in found.synonyms] == [
        ("segment.bytes", "50000", 1),
        ("log.segment.bytes", "100000", 4),
        ("log.segment.bytes", "1073741824", 5),
    ]
    without = ask(client, TOPIC, topic, ["segment.bytes"])
    assert without.configs[0].synonyms == []


def test_only_the_settings_asked_for_are_described(client: RawClient) -> None:
    topic = new_topic(client)
    assert set(entries(client, TOPIC, topic, "retention.ms", "flush.ms", "no.such")) == {
        "retention.ms",
        "flush.ms",
    }
    assert ask(client, TOPIC, topic, []).configs == []


def test_broker_is_described_with_what_can_be_changed(client: RawClient) -> None:
    found = entries(client, BROKER, "0")
    assert len(found) >= 205
    assert found["num.partitions"].value == "2"
    assert (found["num.partitions"].config_source, found["num.partitions"].read_only) == (4, True)
    assert (found["num.io.threads"].config_source, found["num.io.threads"].read_only) == (5, False)
    assert found["log.cleaner.io.max.bytes.per.second"].value == "1.7976931348623157E308"
    assert found["log.roll.ms"].value is None
    assert found["ssl.key.password"].is_sensitive


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (TOPIC, "absent", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        (TOPIC, "no/name", ErrorCode.INVALID_TOPIC_EXCEPTION, "no/name"),
        (BROKER, "7", ErrorCode.INVALID_REQUEST, "expected 0 or empty string, but received 7"),
        (BROKER, "me", ErrorCode.INVALID_REQUEST, "Broker id must be an integer, but it is: me"),
        (LOGGER, "", ErrorCode.INVALID_REQUEST, "Broker id must not be empty"),
        (LOGGER, "7", ErrorCode.INVALID_REQUEST, "expected 0, but received 7"),
        (3, "group", ErrorCode.INVALID_REQUEST, "resource type"),
    ],
)
def test_describing_what_is_not_there_or_not_ours_is_refused(
    client: RawClient, kind: int, name: str, code: ErrorCode, message: str | None
) -> None:
    result = ask(client, kind, name)
    assert (result.error_code, result.configs) == (code, [])
    assert (result.resource_type, result.resource_name) == (kind, name)
    assert (message or "") in (result.error_message or "")
    assert (result.error_message is None) == (message is None)


# -- topics --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(2))
def test_alter_replaces_all_settings_of_a_topic(
    broker: BrokerProcess, client: RawClient, version: int
) -> None:
    topic = new_topic(client, retention_ms="60000")
    new = {"flush.ms": "5000", "cleanup.policy": "compact,delete"}
    assert replace(client, TOPIC, topic, new, version=version) == OK
    assert stored(broker, f"topics/{topic}") == new
    found = entries(client, TOPIC, topic)
    assert found["retention.ms"].config_source == 5
    assert found["cleanup.policy"].value == "compact,delete"


@pytest.mark.parametrize("version", range(2))
def test_incremental_alter_leaves_what_it_does_not_name(
    broker: BrokerProcess, client: RawClient, version: int
) -> None:
    topic = new_topic(client, retention_ms="60000", flush_ms="5000")
    verdict = change(
        client,
        TOPIC,
        topic,
        ("flush.ms", DELETE, None),
        ("segment.ms", SET, "70000"),
        ("cleanup.policy", APPEND, "compact"),
        version=version,
    )
    assert verdict == OK
    assert stored(broker, f"topics/{topic}") == {
        "retention.ms": "60000",
        "segment.ms": "70000",
        "cleanup.policy": "delete,compact",
    }
    assert change(client, TOPIC, topic, ("cleanup.policy", SUBTRACT, "delete")) == OK
    assert value(client, TOPIC, topic, "cleanup.policy") == "compact"


def test_a_topics_new_limit_holds_at_once_for_open_logs(client: RawClient) -> None:
    topic = new_topic(client)
    batch = make_batch(bytes(2000))
    assert produce(client, topic, batch).error_code == ErrorCode.NONE
    assert change(client, TOPIC, topic, ("max.message.bytes", SET, "1000")) == OK
    too_large = ErrorCode.MESSAGE_TOO_LARGE
    eventually(lambda: produce(client, topic, batch).error_code == too_large)
    assert change(client, TOPIC, topic, ("max.message.bytes", DELETE, None)) == OK
    eventually(lambda: produce(client, topic, batch).error_code == ErrorCode.NONE)


def test_validate_only_changes_nothing(broker: BrokerProcess, client: RawClient) -> None:
    topic = new_topic(client, flush_ms="5000")
    wanted = {"flush.ms": "1"}
    assert replace(client, TOPIC, topic, wanted, validate_only=True) == OK
    assert change(client, TOPIC, topic, ("flush.ms", SET, "1"), validate_only=True) == OK
    assert change(client, BROKER, "0", ("num.io.threads", SET, "9"), validate_only=True) == OK
    assert stored(broker, f"topics/{topic}") == {"flush.ms": "5000"}


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ([("no.such", SET, "1")], ErrorCode.INVALID_CONFIG, "no.such: unknown topic setting"),
        ([("flush.ms", SET, "soon")], ErrorCode.INVALID_REQUEST, "flush.ms: soon: must be a whole"),
        ([("flush.ms", SET, "-1")], ErrorCode.INVALID_REQUEST, "must be at least 0"),
        ([("flush.ms", APPEND, "1")], ErrorCode.INVALID_REQUEST, "append is not allowed for"),
        ([("flush.ms", SUBTRACT, "1")], ErrorCode.INVALID_REQUEST, "subtract is not allowed for"),
        ([("no.such", APPEND, "1")], ErrorCode.INVALID_CONFIG, "no.such"),
        ([("flush.ms", SET, None)], ErrorCode.INVALID_REQUEST, "Null value not supported"),
        ([("flush.ms", 9, "1")], ErrorCode.INVALID_REQUEST, "Unknown operation 9"),
        (
            [("flush.ms", SET, "1"), ("flush.ms", DELETE, None)],
            ErrorCode.INVALID_REQUEST,
            "duplicate config keys : flush.ms",
        ),
        (
            [("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "8")],
            ErrorCode.INVALID_CONFIG,
            "must not exceed max.compaction.lag.ms, 8",
        ),
    ],
)
def test_a_wrong_change_of_a_topic_is_refused_as_a_whole(
    broker: BrokerProcess,
    client: RawClient,
    changes: list[tuple[str, int, str | None]],
    code: ErrorCode,
    message: str,
) -> None:
    topic = new_topic(client, retention_ms="60000")
    verdict = change(client, TOPIC, topic, ("segment.ms", SET, "70000"), *changes)
    assert verdict[0] == code
    assert message in (verdict[1] or "")
    assert stored(broker, f"topics/{topic}") == {"retention.ms": "60000"}


def test_a_topic_that_is_not_there_cannot_be_altered(client: RawClient) -> None:
    absent = (ErrorCode.UNKNOWN_SERVER_ERROR, 'Topic "absent" does not exist.')
    assert replace(client, TOPIC, "absent", {"flush.ms": "1"}) == absent
    assert change(client, TOPIC, "absent", ("flush.ms", SET, "1")) == absent
    code, _ = change(client, TOPIC, "no/name", ("flush.ms", SET, "1"))
    assert code == ErrorCode.INVALID_TOPIC_EXCEPTION


# -- brokers -------------------------------------------------------------------------------------


def test_defaults_of_the_cluster_lie_below_the_brokers_own_and_above_its_file(
    broker: BrokerProcess, client: RawClient
) -> None:
    name = "log.segment.bytes"
    assert change(client, BROKER, "", (name, SET, "200000")) == OK
    eventually(lambda: value(client, BROKER, "0", name) == "200000")
    assert change(client, BROKER, "0", (name, SET, "300000")) == OK
    eventually(lambda: value(client, BROKER, "0", name) == "300000")
    found = entries(client, BROKER, "0", name)[name]
    assert [(one.value, one.source) for one in found.synonyms] == [
        ("300000", 2),
        ("200000", 3),
        ("100000", 4),
        ("1073741824", 5),
    ]
    defaults = entries(client, BROKER, "")
    assert [(one.name, one.value, one.config_source) for one in defaults.values()] == [
        (name, "200000", 3)
    ]
    assert stored(broker, "brokers/<default>") == {name: "200000"}
    assert stored(broker, "brokers/0") == {name: "300000"}
    topic = entries(client, TOPIC, new_topic(client), "segment.bytes")["segment.bytes"]
    assert (topic.value, topic.config_source) == ("300000", 2)
    assert replace(client, BROKER, "0", {}) == OK
    assert replace(client, BROKER, "", {}) == OK
    eventually(lambda: value(client, BROKER, "0", name) == "100000")


def test_message_max_bytes_of_the_cluster_holds_for_topics_that_do_not_override_it(
    client: RawClient,
) -> None:
    plain, own = new_topic(client), new_topic(client, max_message_bytes="100000")
    batch = make_batch(bytes(2000))
    assert change(client, BROKER, "", ("message.max.bytes", SET, "1000")) == OK
    too_large = ErrorCode.MESSAGE_TOO_LARGE
    eventually(lambda: produce(client, plain, batch).error_code == too_large)
    assert produce(client, own, batch).error_code == ErrorCode.NONE
    assert produce(client, new_topic(client), batch).error_code == too_large
    assert change(client, BROKER, "", ("message.max.bytes", DELETE, None)) == OK
    eventually(lambda: produce(client, plain, batch).error_code == ErrorCode.NONE)


@pytest.mark.parametrize(
    ("name", "key", "text", "message"),
    [
        ("0", "num.partitions", "3", "num.partitions: cannot be updated dynamically"),
        ("0", "ssl.keystore.location", "/x", "can be updated for a listener only"),
        ("0", "num.io.threads", "many", "num.io.threads: many: must be a whole number"),
        ("0", "num.io.threads", "0", "must be at least 1"),
        ("0", "num.io.threads", "2", "must be at least half the current value 8"),
        ("0", "num.io.threads", "99", "must be at most double the current value 8"),
        ("0", "log.cleaner.threads", "5", "must be at most double the current value 1"),
        ("0", "log.roll.ms", "0", "log.roll.ms: 0: must be at least 1"),
        ("", "advertised.listeners", "PLAINTEXT://h:1", "a broker id must be given"),
        ("", "listener.name.plaintext.ssl.keystore.type", "PEM", "a broker id must be given"),
        (
            "0",
            "listener.name.x.ssl.key.password",
            "hush",
            "password.encoder.secret is not set",
        ),
        ("7", "num.io.threads", "9", "expected 0, but received 7"),
        ("me", "num.io.threads", "9", "Broker id must be an integer, but it is: me"),
    ],
)
def test_a_wrong_change_of_a_broker_is_refused(
    client: RawClient, name: str, key: str, text: str, message: str
) -> None:
    for verdict in (
        change(client, BROKER, name, (key, SET, text)),
        replace(client, BROKER, name, {key: text}),
    ):
        assert verdict[0] == ErrorCode.INVALID_REQUEST
        assert message in (verdict[1] or "")
        assert "hush" not in (verdict[1] or "")


def test_a_setting_that_nobody_knows_is_kept_but_not_shown(
    broker: BrokerProcess, client: RawClient
) -> None:
    assert change(client, BROKER, "0", ("my.plugin.key", SET, "hush")) == OK
    eventually(lambda: "my.plugin.key" in entries(client, BROKER, "0"))
    found = entries(client, BROKER, "0", "my.plugin.key")["my.plugin.key"]
    assert (found.value, found.is_sensitive, found.config_source) == (None, True, 2)
    assert [one.value for one in found.synonyms] == [None]
    assert stored(broker, "brokers/0") == {"my.plugin.key": "hush"}
    assert replace(client, BROKER, "0", {}) == OK


# -- loggers -------------------------------------------------------------------------------------


def test_log_levels_are_changed_at_run_time(broker: BrokerProcess, client: RawClient) -> None:
    found = entries(client, LOGGER, "0")
    assert (found["root"].value, found["broker.server"].value) == ("INFO", "INFO")
    assert found["root"].config_source == 6
    assert change(client, LOGGER, "0", ("broker.dispatch", SET, "ERROR")) == OK
    assert value(client, LOGGER, "0", "broker.dispatch") == "ERROR"
    assert change(client, LOGGER, "0", ("broker.dispatch", DELETE, None)) == OK
    assert value(client, LOGGER, "0", "broker.dispatch") == "INFO"


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (("no.such", SET, "INFO"), "Logger no.such does not exist!"),
        (("root", SET, "LOUD"), "not a supported log level"),
        (("root", DELETE, None), "root logger is not allowed"),
        (("root", APPEND, "INFO"), "APPEND operation is not allowed"),
    ],
)
def test_a_wrong_change_of_a_logger_is_refused(
    client: RawClient, what: tuple[str, int, str | None], message: str
) -> None:
    code, told = change(client, LOGGER, "0", what)
    assert code == ErrorCode.INVALID_REQUEST
    assert message in (told or "")


def test_alter_configs_knows_no_loggers(client: RawClient) -> None:
    code, _ = replace(client, LOGGER, "0", {"root": "INFO"})
    assert code == ErrorCode.INVALID_REQUEST
