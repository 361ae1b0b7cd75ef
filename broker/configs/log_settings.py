"""Changed settings on their way to the logs: a topic's own, or the broker's behind them."""

from collections.abc import Mapping
from typing import Final

from broker.settings import TOPIC_SETTINGS, Settings
from broker.settings.dynamic import DYNAMIC_SETTINGS
from broker.topic_configs import TopicConfigs
from controller.controller import Controller
from storage.log_manager import LogManager

_UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"

_BEHIND_TOPICS: Final = frozenset(
    setting.broker.name
    for setting in TOPIC_SETTINGS.values()
    if setting.broker is not None and setting.broker.name in DYNAMIC_SETTINGS
)


class LogSettings:
    """Keeps open logs at the settings that hold for them."""

    def __init__(
        self, topic_configs: TopicConfigs, logs: LogManager, controller: Controller
    ) -> None:
        self._topic_configs = topic_configs
        self._logs = logs
        self._controller = controller

    def topic_changed(self, topic: str, overrides: Mapping[str, str]) -> None:
        self._topic_configs.change(topic, overrides)
        self._update_logs(topic)
        if overrides.get(_UNCLEAN_ELECTION, "").lower() == "true":
            self._controller.enable_unclean_election_in(topic)

    def concerns(self, name: str) -> bool:
        return name in _BEHIND_TOPICS

    def check(self, _now: Settings, _wanted: Settings) -> None:
        """Single values have been checked, and Kafka asks for no more."""

    async def apply(self, before: Settings, now: Settings) -> None:
        self._topic_configs.change_defaults()
        self._logs.default_config = self._topic_configs.default
        self._update_logs()
        if now.unclean_leader_election_enable != before.unclean_leader_election_enable:
            self._controller.set_unclean_election(now.unclean_leader_election_enable)

    def _update_logs(self, topic: str | None = None) -> None:
        for log in self._logs.all_logs():
            if topic in (None, log.topic):
                config = self._topic_configs.log_config(log.topic)
                if config != log.config:
                    log.update_config(config)
