"""Values: how they are read, what is refused, what is derived from several."""

from pathlib import Path

import pytest

from broker.settings import Listener, SecurityProtocol, Settings, SettingsError, load_settings

PLAINTEXT = SecurityProtocol.PLAINTEXT
WEEK_MS = 7 * 24 * 60 * 60 * 1000


def settings_with(*overrides: str, home: Path | None = None) -> Settings:
    return load_settings(None, overrides, {}, home)


def complaint(*overrides: str) -> str:
    with pytest.raises(SettingsError) as caught:
        settings_with(*overrides)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_values_are_typed_by_attribute_and_by_name() -> None:
    settings = settings_with(
        "num.io.threads= +16 ",
        "log.cleaner.min.cleanable.ratio=.25",
        "auto.create.topics.enable=FALSE",
        "log.cleanup.policy=compact, delete",
        "offsets.topic.replication.factor=1",
    )
    assert settings.num_io_threads == settings["num.io.threads"] == 16
    assert settings.log_cleaner_min_cleanable_ratio == 0.25
    assert settings.auto_create_topics_enable is False
    assert settings.log_cleanup_policy == ("compact", "delete")
    assert settings.offsets_topic_replication_factor == 1


def test_settings_are_frozen() -> None:
    settings = settings_with()
    with pytest.raises(AttributeError, match="frozen"):
        settings.num_io_threads = 3


@pytest.mark.parametrize(
    ("override", "why"),
    [
        ("num.io.threads=0", "num.io.threads: 0: must be at least 1; the default is 8"),
        ("num.io.threads=many", "num.io.threads: many: must be a whole number"),
        ("num.io.threads=1_000", "num.io.threads: 1_000: must be a whole number"),
        ("num.io.threads=", "num.io.threads: '': must be a whole number"),
        ("num.io.threads=3000000000", "must be a whole number from -2147483648 to 2147483647"),
        ("offsets.topic.replication.factor=40000", "from -32768 to 32767"),
        ("log.preallocate=yes", "log.preallocate: yes: must be true or false"),
        ("log.cleanup.policy=keep", "must be a list of compact, delete"),
        ("log.message.timestamp.type=Now", "must be one of CreateTime, LogAppendTime"),
        ("compression.type=brotli", "must be one of uncompressed, zstd, lz4, snappy, gzip"),
        ("log.message.format.version=9.9", "must be a Kafka release up to 2.5"),
        ("log.cleaner.min.cleanable.ratio=half", "must be a number"),
    ],
)
def test_a_wrong_value_is_told_as_setting_value_why(override: str, why: str) -> None:
    assert why in complaint(override)
    assert complaint(override).endswith("(--override)")


@pytest.mark.parametrize("release", ["2.5", "2.5.1", "2.4-IV1", "0.11.0.3", "0.10.0-IV0", "0.8.2"])
def test_kafka_releases_are_named_with_or_without_their_details(release: str) -> None:
    assert settings_with(f"log.message.format.version={release}")


def test_a_password_never_shows() -> None:
    settings = settings_with("ssl.key.password=hush")
    assert settings.ssl_key_password is not None
    assert settings.ssl_key_password.secret == "hush"
    assert "hush" not in f"{settings.ssl_key_password} {settings.ssl_key_password!r}"


@pytest.mark.parametrize(
    ("overrides", "name", "why"),
    [
        (("broker.id=-2",), "broker.id", "at least -1"),
        (("broker.id=1001",), "broker.id", "reserved.broker.max.id, 1000"),
        (("broker.id.generation.enable=false",), "broker.id", "at least 0"),
        (("log.dirs= ",), "log.dirs", "name at least one"),
        (("log.roll.ms=0",), "log.roll.ms", "at least 1"),
        (("log.roll.jitter.ms=-1",), "log.roll.jitter.ms", "at least 0"),
        (("log.retention.ms=0",), "log.retention.ms", "-1 for ever"),
        (("log.retention.minutes=0",), "log.retention.minutes", "-1 for ever"),
        (("log.cleaner.threads=128",), "log.cleaner.dedupe.buffer.size", "1 MB for each"),
        (("inter.broker.protocol.version=0.10.2",), "log.message.format.version", "newer"),
        (("queued.max.request.bytes=1000",), "queued.max.request.bytes", "or -1"),
        (("max.connections.per.ip=0",), "max.connections.per.ip", "can be 0 only"),
        (("max.connections.per.ip.overrides=a",), "max.connections.per.ip.overrides", "name:value"),
        (("max.connections.per.ip.overrides=a:b",), "max.connections.per.ip.overrides", "count"),
        (("connections.max.idle.ms=100",), "connections.max.idle.ms", "must exceed"),
        (("replica.fetch.wait.max.ms=30001",), "replica.fetch.wait.max.ms", "socket.timeout"),
        (("replica.lag.time.max.ms=499",), "replica.fetch.wait.max.ms", "lag.time"),
        (("offsets.commit.required.acks=4",), "offsets.commit.required.acks", "between -1 and"),
        (("listeners=127.0.0.1:9092",), "listeners", "use the form PLAINTEXT://127.0.0.1:9092"),
        (("listeners=",), "listeners", "names no listener"),
        (("listeners=PLAINTEXT://a:70000",), "listeners", "use 0 to 65535"),
        (("listeners=OTHER://a:1",), "listeners", "add OTHER:PLAINTEXT"),
        (("listeners=PLAINTEXT://a:1,SSL://a:1",), "listeners", "a port of its own"),
        (("listeners=PLAINTEXT://a:1,PLAINTEXT://a:2",), "listeners", "a name of its own"),
        (("listeners=PLAINTEXT://0.0.0.0:1",), "listeners", "set advertised.listeners"),
        (("advertised.listeners=SSL://a:1",), "advertised.listeners", "not among the listeners"),
        (("listeners=SSL://a:1",), "security.inter.broker.protocol", "set inter.broker.listener"),
        (("inter.broker.listener.name=SSL",), "inter.broker.listener.name", "one of PLAINTEXT"),
        (("security.inter.broker.protocol=TLS",), "security.inter.broker.protocol", "use one of"),
        (("listener.security.protocol.map=A",), "listener.security.protocol.map", "name:value"),
        (("listener.security.protocol.map=A:B",), "listener.security.protocol.map", "use one of"),
        (("control.plane.listener.name=A",), "control.plane.listener.name", "one of PLAINTEXT"),
        (
            ("control.plane.listener.name=PLAINTEXT",),
            "control.plane.listener.name",
            "must differ",
        ),
        (
            ("inter.broker.listener.name=PLAINTEXT", "security.inter.broker.protocol=PLAINTEXT"),
            "inter.broker.listener.name",
            "remove one",
        ),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(
    overrides: tuple[str, ...], name: str, why: str
) -> None:
    line = complaint(*overrides)
    assert line.startswith(f"{name}: ")
    assert why in line


def test_milliseconds_win_over_minutes_and_those_over_hours() -> None:
    assert settings_with().effective_log_retention_ms == WEEK_MS
    hours, minutes, ms = "log.retention.hours=2", "log.retention.minutes=3", "log.retention.ms=4"
    assert settings_with(hours).effective_log_retention_ms == 2 * 3600 * 1000
    assert settings_with(hours, minutes).effective_log_retention_ms == 3 * 60 * 1000
    assert settings_with(hours, minutes, ms).effective_log_retention_ms == 4
    assert settings_with("log.retention.hours=-1").effective_log_retention_ms == -1
    assert settings_with().effective_log_roll_ms == WEEK_MS
    assert settings_with("log.roll.hours=1", "log.roll.ms=5").effective_log_roll_ms == 5
    assert settings_with("log.roll.jitter.hours=1").effective_log_roll_jitter_ms == 3600 * 1000


def test_the_flush_and_connection_times_fall_back() -> None:
    assert settings_with().effective_log_flush_ms == 2**63 - 1
    assert settings_with("log.flush.scheduler.interval.ms=7").effective_log_flush_ms == 7
    assert settings_with("log.flush.interval.ms=8").effective_log_flush_ms == 8
    assert settings_with().effective_zookeeper_connection_timeout_ms == 18000


def test_log_dirs_win_over_log_dir_and_the_default_is_kafkas(tmp_path: Path) -> None:
    assert settings_with(home=tmp_path).log_directories == (Path("/tmp/kafka-logs"),)
    both = settings_with("log.dir=/a", "log.dirs=/b, /c,", home=tmp_path)
    assert both.log_directories == (Path("/b"), Path("/c"))
    assert settings_with("log.dir=/a", home=tmp_path).log_directories == (Path("/a"),)


def test_relative_directories_start_where_they_were_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    monkeypatch.chdir(here)
    file = home / "server.properties"
    file.write_text("log.dirs=logs\n")
    assert load_settings(file, (), {}, home).log_directories == (home / "logs",)
    overridden = load_settings(file, ["log.dirs=logs"], {}, home)
    assert overridden.log_directories == (here / "logs",)
    from_environment = load_settings(file, (), {"KAFKA_LOG_DIRS": "logs"}, home)
    assert from_environment.log_directories == (here / "logs",)


def test_listeners_are_read_into_addresses() -> None:
    settings = settings_with(
        "listeners=in://[::1]:0, EXTERNAL://:9093",
        "advertised.listeners=EXTERNAL://example.org:19093,IN://h:1",
        "listener.security.protocol.map=IN:plaintext,EXTERNAL:SASL_SSL",
        "inter.broker.listener.name=in",
    )
    assert settings.bound_listeners == (
        Listener("IN", PLAINTEXT, "::1", 0),
        Listener("EXTERNAL", SecurityProtocol.SASL_SSL, "", 9093),
    )
    assert str(settings.bound_listeners[0]) == "IN://[::1]:0"
    assert settings.published_listeners[0].host == "example.org"
    assert settings.inter_broker_listener == "IN"


def test_host_and_port_stand_in_for_listeners() -> None:
    assert settings_with().bound_listeners == (Listener("PLAINTEXT", PLAINTEXT, "", 9092),)
    old = settings_with("host.name=h", "port=1", "advertised.port=2")
    assert old.bound_listeners == (Listener("PLAINTEXT", PLAINTEXT, "h", 1),)
    assert old.published_listeners == (Listener("PLAINTEXT", PLAINTEXT, "h", 2),)


def test_unadvertised_listeners_are_published_as_they_are() -> None:
    settings = settings_with("listeners=PLAINTEXT://127.0.0.1:0")
    assert settings.published_listeners == settings.bound_listeners


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (("listeners=PLAINTEXT://:9092", "advertised.listeners=PLAINTEXT://localhost:9092"), 1),
        (("listeners=PLAINTEXT://0.0.0.0:1", "advertised.listeners=PLAINTEXT://127.0.0.1:1"), 1),
        (("listeners=PLAINTEXT://10.0.0.1:1", "advertised.listeners=PLAINTEXT://[::1]:1"), 1),
        (("listeners=PLAINTEXT://127.0.0.1:1",), 0),
        (("listeners=PLAINTEXT://:1", "advertised.listeners=PLAINTEXT://example.org:1"), 0),
    ],
)
def test_clients_that_would_be_sent_to_themselves_are_worth_a_warning(
    overrides: tuple[str, ...], told: int
) -> None:
    warnings = settings_with(*overrides).warnings()
    assert [line.partition(": ")[0] for line in warnings] == ["advertised.listeners"] * told


def test_a_change_is_seen_by_everybody_who_holds_the_settings() -> None:
    settings = settings_with("num.io.threads=2", "listeners=PLAINTEXT://h:1")
    before = settings.snapshot()
    assert settings.bound_listeners[0].host == "h"
    settings.adopt(settings_with("num.io.threads=3", "listeners=PLAINTEXT://i:1"))
    assert settings.num_io_threads == 3
    assert settings.bound_listeners[0].host == "i"
    assert settings.num_network_threads == 3
    assert (before.num_io_threads, before.bound_listeners[0].host) == (2, "h")


def test_settings_without_effect_are_told_when_given() -> None:
    settings = settings_with("ssl.protocol=TLSv1.3", "broker.id=1")
    assert settings.without_effect == ("ssl.protocol",)
