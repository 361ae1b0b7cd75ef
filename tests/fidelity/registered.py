"""Topics in ZooKeeper, so that a broker of Kafka's serves logs that it has not written."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Final

from kazoo.client import KazooClient

from storage.log_config import LogConfig

_DEFAULTS: Final = LogConfig()


def register_topics(connect: str, configs: Mapping[str, LogConfig], leader_epoch: int) -> None:
    """Write topics to ZooKeeper as a controller has left them: led by broker 0."""
    client = KazooClient(connect)
    client.start()
    try:
        for topic, config in configs.items():
            znodes = {
                f"/brokers/topics/{topic}": {"version": 1, "partitions": {"0": [0]}},
                f"/brokers/topics/{topic}/partitions/0/state": {
                    "version": 1,
                    "controller_epoch": 1,
                    "leader": 0,
                    "leader_epoch": leader_epoch,
                    "isr": [0],
                },
                f"/config/topics/{topic}": {"version": 1, "config": _topic_settings(config)},
            }
            for path, value in znodes.items():
                client.create(path, json.dumps(value).encode(), makepath=True)
    finally:
        client.stop()
        client.close()


def _topic_settings(config: LogConfig) -> dict[str, str]:
    """The settings that are not Kafka's own."""
    changed = {
        one.name: getattr(config, one.name)
        for one in fields(LogConfig)
        if one.init and getattr(config, one.name) != getattr(_DEFAULTS, one.name)
    }
    return {name.replace("_", "."): _text(value) for name, value in changed.items()}


def _text(value: object) -> str:
    return ",".join(sorted(value)) if isinstance(value, frozenset) else str(value)
