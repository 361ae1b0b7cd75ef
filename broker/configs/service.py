"""Dynamic configuration put together: loaded before the parts are made, followed once they run."""

import time
from collections.abc import Iterable, Mapping

from broker.configs.change_listener import ChangeListener
from broker.configs.client_configs import ClientConfigs
from broker.configs.dynamic_settings import DynamicSettings, Reconfigurable
from broker.configs.log_settings import LogSettings
from broker.settings import Settings
from controller import znodes
from controller.metadata_store import MetadataStore


class DynamicConfiguration:
    """What ZooKeeper says of configuration, from the start of a broker to its end."""

    def __init__(self, settings: Settings, store: MetadataStore, broker_id: int) -> None:
        self.settings = DynamicSettings(settings)
        self.clients = ClientConfigs()
        self._store = store
        self._broker_id = broker_id
        self._listener: ChangeListener | None = None

    async def load(self) -> None:
        """Have the dynamic settings hold before anything is made by them."""
        defaults = await self._store.config(znodes.BROKER_CONFIGS, znodes.DEFAULT_ENTITY)
        own = await self._store.config(znodes.BROKER_CONFIGS, str(self._broker_id))
        under_new_secret = self.settings.re_encode(own)
        if under_new_secret is not None:
            own = under_new_secret
            await self._store.change_config(znodes.BROKER_CONFIGS, str(self._broker_id), own)
        await self.settings.take_stored(defaults, per_broker=False)
        await self.settings.take_stored(own, per_broker=True)

    async def follow(self, logs: LogSettings, parts: Iterable[Reconfigurable]) -> None:
        """From now on have every change take effect, in the logs and in the other parts."""
        for part in (logs, *parts):
            self.settings.add(part)
        self._listener = ChangeListener(
            self._store,
            {
                znodes.TOPIC_CONFIGS: logs.topic_changed,
                znodes.BROKER_CONFIGS: self._broker_changed,
                znodes.CLIENT_CONFIGS: self.clients.client_changed,
                znodes.USER_CONFIGS: self.clients.user_changed,
            },
            now_ms=lambda: time.time_ns() // 1_000_000,
        )
        await self._listener.start()

    async def stop(self) -> None:
        if self._listener is not None:
            await self._listener.stop()

    async def _broker_changed(self, name: str, stored: Mapping[str, str]) -> None:
        if name == znodes.DEFAULT_ENTITY:
            await self.settings.take_stored(stored, per_broker=False)
        elif name == str(self._broker_id):
            await self.settings.take_stored(stored, per_broker=True)
