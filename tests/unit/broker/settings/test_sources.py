"""File, environment and command line: who wins, and what is said of names that are none."""

from pathlib import Path

import pytest

from broker.settings import SettingsError, load_settings
from broker.settings.sources import Source, environment_to_name


def write(directory: Path, text: str) -> Path:
    file = directory / "server.properties"
    file.write_text(text)
    return file


def test_overrides_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, "num.io.threads=2\nnum.partitions=2\nnum.network.threads=2\n")
    settings = load_settings(
        file,
        ["num.io.threads=4"],
        {"KAFKA_NUM_IO_THREADS": "3", "KAFKA_NUM_PARTITIONS": "3"},
    )
    assert settings.num_io_threads == 4
    assert settings.num_partitions == 3
    assert settings.num_network_threads == 2
    assert settings.background_threads == 10
    assert settings.source_of("num.io.threads") is Source.OVERRIDE
    assert settings.source_of("num.partitions") is Source.ENVIRONMENT
    assert settings.source_of("num.network.threads") is Source.FILE
    assert settings.source_of("background.threads") is Source.DEFAULT


def test_the_last_of_repeated_settings_counts(tmp_path: Path) -> None:
    file = write(tmp_path, "num.io.threads=2\nnum.io.threads=3\n")
    assert load_settings(file, environment={}).num_io_threads == 3
    repeated = ["num.io.threads=5", "num.io.threads=6"]
    assert load_settings(None, repeated, {}).num_io_threads == 6


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("KAFKA_LOG_DIRS", "log.dirs"),
        ("KAFKA_BROKER_ID", "broker.id"),
        ("KAFKA_A__B", "a_b"),
        ("KAFKA_A___B_C", "a-b.c"),
    ],
)
def test_a_variable_stands_for_a_name_as_in_containers(variable: str, name: str) -> None:
    assert environment_to_name(variable) == name


def test_a_variable_finds_a_name_with_capitals() -> None:
    settings = load_settings(None, (), {"KAFKA_ZOOKEEPER_CLIENTCNXNSOCKET": "x.Y"})
    assert settings.zookeeper_client_cnxn_socket == "x.Y"


def test_variables_that_are_no_settings_are_reported_not_refused() -> None:
    settings = load_settings(None, (), {"KAFKA_HEAP_OPTS": "-Xmx1G", "HOME": "/root"})
    assert settings.ignored_environment == ("KAFKA_HEAP_OPTS",)


def test_the_variables_of_a_kubernetes_service_are_no_settings() -> None:
    settings = load_settings(None, (), {"KAFKA_PORT": "tcp://10.0.0.1:9092"})
    assert settings.port == 9092
    assert settings.ignored_environment == ("KAFKA_PORT",)


def test_a_value_may_hold_equal_signs() -> None:
    settings = load_settings(None, ["sasl.jaas.config=a b=c;"], {})
    assert settings.sasl_jaas_config is not None
    assert settings.sasl_jaas_config.secret == "a b=c;"


@pytest.mark.parametrize("override", ["num.io.threads", "=3", ""])
def test_an_override_of_another_form_is_refused(override: str) -> None:
    with pytest.raises(SettingsError, match="--override setting=value"):
        load_settings(None, [override], {})


def test_an_unknown_setting_is_warned_of_with_the_closest_name_and_the_place(
    tmp_path: Path,
) -> None:
    file = write(tmp_path, "# first\n\nnum.io.thread=2\n")
    settings = load_settings(file, ["zzzz=1"], {})
    assert settings.warnings() == [
        f"num.io.thread: unknown setting, ignored; did you mean num.io.threads? ({file}, line 3)",
        "zzzz: unknown setting, ignored (--override)",
    ]
    assert settings.num_io_threads == 8
    assert "zzzz" not in settings.given


@pytest.mark.parametrize(
    "name",
    ["listener.name.internal.sasl.jaas.config", "super.users", "authorizer.zookeeper.url"],
)
def test_what_kafka_passes_on_to_plugins_is_let_through(name: str) -> None:
    settings = load_settings(None, [f"{name}=x"], {})
    assert settings.given[name].text == "x"
    assert settings.without_effect == (name,)


def test_a_listeners_own_setting_is_checked_like_the_general_one() -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(None, ["listener.name.internal.max.connections=many"], {})
    assert str(caught.value).startswith(
        "listener.name.internal.max.connections: many: must be a whole number"
    )


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(tmp_path / "absent.properties", environment={})
    assert str(caught.value) == (
        f"{tmp_path}/absent.properties: cannot be read: No such file or directory;"
        " name a readable properties file"
    )


def test_a_file_that_breaks_the_syntax_is_named_with_the_line(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"server.properties: line 1: .u needs four"):
        load_settings(write(tmp_path, "broker.id=\\u00zz\n"), environment={})
