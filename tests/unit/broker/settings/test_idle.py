"""Settings that are called idle against the sources: who reads them?"""

import functools
import re
from pathlib import Path

import pytest

from broker.settings import BROKER_SETTINGS, TOPIC_SETTINGS
from broker.settings.settings import Settings

PROJECT = Path(__file__).parents[4]
ROOMS = ("broker", "controller", "network", "storage")
DECLARATIONS = ("*_table.py", "topic.py", "checks.py", "dynamic.py", "settings.py")

DERIVED = {
    "log_roll_hours": "effective_log_roll_ms",
    "log_roll_jitter_hours": "effective_log_roll_jitter_ms",
    "log_retention_minutes": "effective_log_retention_ms",
    "log_retention_hours": "effective_log_retention_ms",
    "zookeeper_connection_timeout_ms": "effective_zookeeper_connection_timeout_ms",
    "log_dir": "log_directories",
    "log_dirs": "log_directories",
    "listeners": "bound_listeners",
    "host_name": "bound_listeners",
    "port": "bound_listeners",
    "listener_security_protocol_map": "bound_listeners",
    "advertised_listeners": "published_listeners",
    "advertised_host_name": "published_listeners",
    "advertised_port": "published_listeners",
    "inter_broker_listener_name": "inter_broker_listener",
    "security_inter_broker_protocol": "inter_broker_listener",
    "control_plane_listener_name": "control_plane_listener",
}
"""Settings that are read by way of a property of `Settings`."""

READ_BY_A_CHECK_ALONE = {
    "broker.id.generation.enable": True,  # refusing to start is all that it is for
}


@functools.cache
def sources() -> str:
    return "\n".join(
        file.read_text()
        for room in ROOMS
        for file in (PROJECT / room).rglob("*.py")
        if not (file.parent.name == "settings" and any(map(file.match, DECLARATIONS)))
    )


def is_read(attribute: str) -> bool:
    return re.search(rf"\.{attribute}\b", sources()) is not None


def has_effect(name: str) -> bool:
    if name in READ_BY_A_CHECK_ALONE:
        return READ_BY_A_CHECK_ALONE[name]
    attribute = BROKER_SETTINGS[name].attribute
    if is_read(attribute) or is_read(DERIVED.get(attribute, attribute)):
        return True
    if DERIVED.get(attribute, "").startswith("effective_log_"):
        return True  # the topics' settings of the same name are made of it
    return any(
        one.broker is BROKER_SETTINGS[name] and is_read(one.attribute)
        for one in TOPIC_SETTINGS.values()
    )


@pytest.mark.parametrize("name", BROKER_SETTINGS)
def test_a_setting_is_called_idle_if_and_only_if_nothing_reads_it(name: str) -> None:
    setting = BROKER_SETTINGS[name]
    if has_effect(name):
        assert not setting.idle, f"{name} is read: take idle=True from its declaration"
    else:
        assert setting.idle, f"nothing reads {name}: declare it with idle=True"


def test_the_properties_named_here_are_there() -> None:
    for derived in DERIVED.values():
        assert hasattr(Settings, derived)
