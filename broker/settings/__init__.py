"""Every setting of Kafka 2.5, declared once: where it comes from, what it may be, what it is.

The tables declare the settings; `load_settings` yields a typed, frozen `Settings`. The other
rooms know nothing of this: `broker` hands them small dataclasses of their own.
"""

from broker.settings.errors import (
    ConflictingSettingsError,
    SettingsError,
    UnknownSettingError,
)
from broker.settings.listeners import Listener, SecurityProtocol
from broker.settings.settings import BROKER_SETTINGS, Settings, load_settings
from broker.settings.topic import TOPIC_SETTINGS, TopicSettings

__all__ = [
    "BROKER_SETTINGS",
    "ConflictingSettingsError",
    "Listener",
    "SecurityProtocol",
    "Settings",
    "SettingsError",
    "TOPIC_SETTINGS",
    "TopicSettings",
    "UnknownSettingError",
    "load_settings",
]
