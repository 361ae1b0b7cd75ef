"""The settings that hold now: what the broker was started with, under what ZooKeeper says.

Owns the two dynamic layers and the moment at which a change takes hold: what is wrong is refused
before anything changes, and every part that asked for it is told afterwards. Knows neither how the
layers come here nor what the parts do.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

from broker.configs.password_encoder import PasswordEncoder, UndecodablePasswordError
from broker.settings import Settings, SettingsError
from broker.settings.dynamic import (
    check_names,
    check_value,
    is_stored_password,
    overlay,
)
from broker.settings.sources import Given

logger = logging.getLogger(__name__)

Layer = Mapping[str, str]

_NONE: Final[Layer] = {}


class Reconfigurable(Protocol):
    """A part of the broker that changes with its settings."""

    def concerns(self, name: str) -> bool:
        """Whether a change of this setting is the part's business."""
        ...

    def check(self, now: Settings, wanted: Settings) -> None:
        """Refuse a change that cannot be made, by raising SettingsError."""
        ...

    def apply(self, before: Settings, now: Settings) -> Awaitable[None]:
        """Make the change."""
        ...


class DynamicSettings:
    """Two layers over the settings that the broker was started with.

    `settings` is the object that all parts read; it changes in place.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.static: Mapping[str, Given] = dict(settings.given)
        self.defaults: Layer = _NONE
        self.own: Layer = _NONE
        self._encoder = PasswordEncoder.of(settings)
        self._parts: list[Reconfigurable] = []
        self._reloads: list[Callable[[], None]] = []

    def add(self, part: Reconfigurable) -> None:
        self._parts.append(part)

    def on_reload(self, reload: Callable[[], None]) -> None:
        """Have something called when files may have changed behind settings that have not."""
        self._reloads.append(reload)

    def reload_files(self) -> None:
        """A client sets key or trust stores, perhaps to what they are: their files are new."""
        for reload in self._reloads:
            reload()

    # -- changes -----------------------------------------------------------------------------

    def check(self, layer: Layer, *, per_broker: bool) -> None:
        """Refuse a layer that would not do in the place of the present one."""
        check_names(layer, per_broker=per_broker)
        for name, text in layer.items():
            check_value(name, text)
        self._checked(self._with(layer, per_broker=per_broker))

    async def take_stored(self, stored: Layer, *, per_broker: bool) -> None:
        """Have what ZooKeeper says take effect; what is wrong in it is left out, and told."""
        layer = self.from_stored(stored, per_broker=per_broker)
        before = self.settings.snapshot()
        try:
            wanted, parts = self._checked(self._with(layer, per_broker=per_broker))
        except SettingsError as error:
            logger.error("Settings from ZooKeeper are not applied: %s", error)
            return
        if per_broker:
            self.own = layer
        else:
            self.defaults = layer
        if wanted.given == before.given:
            return
        self.settings.adopt(wanted)
        for part in parts:
            await self._apply(part, before)

    async def _apply(self, part: Reconfigurable, before: Settings) -> None:
        try:
            await part.apply(before, self.settings)
        except Exception:
            logger.exception("%s could not take over its new settings", type(part).__name__)

    def _with(self, layer: Layer, *, per_broker: bool) -> dict[str, Given]:
        if per_broker:
            return overlay(self.static, self.defaults, layer)
        return overlay(self.static, layer, self.own)

    def _checked(self, given: Mapping[str, Given]) -> tuple[Settings, list[Reconfigurable]]:
        """The settings that would hold, and the parts that they concern."""
        wanted = self.settings.with_given(given)
        changed = _changed(self.settings.given, given)
        concerned = [part for part in self._parts if any(map(part.concerns, changed))]
        for part in concerned:
            part.check(self.settings, wanted)
        return wanted, concerned

    # -- what is stored ----------------------------------------------------------------------

    def to_stored(self, layer: Layer) -> dict[str, str]:
        """A layer as it goes to ZooKeeper: its passwords encrypted. Raises SettingsError."""
        return {
            name: self._encode(name, text) if is_stored_password(name) else text
            for name, text in layer.items()
        }

    def from_stored(self, stored: Layer, *, per_broker: bool) -> dict[str, str]:
        """The usable part of what ZooKeeper holds, its passwords decrypted."""
        layer: dict[str, str] = {}
        for name, text in stored.items():
            try:
                check_names([name], per_broker=per_broker)
                plain = self._decode(name, text) if is_stored_password(name) else text
                check_value(name, plain)
            except (SettingsError, UndecodablePasswordError) as error:
                logger.error("%s in ZooKeeper is ignored: %s", name, error)
            else:
                layer[name] = plain
        return layer

    def re_encode(self, stored: Layer) -> dict[str, str] | None:
        """The same with passwords under the new secret, where password.encoder.old.secret opens
        them; None if there is nothing to change."""
        old = PasswordEncoder.of(self.settings, old=True)
        if old is None or not any(map(is_stored_password, stored)):
            return None
        result = dict(stored)
        for name, text in stored.items():
            if is_stored_password(name):
                try:
                    result[name] = self._encode(name, old.decode(text))
                except UndecodablePasswordError:
                    logger.debug("%s is not encrypted under the old secret", name)
        return result

    def _encode(self, name: str, text: str) -> str:
        if self._encoder is None:
            raise SettingsError(
                name, "[hidden]", "cannot be stored, since password.encoder.secret is not set"
            )
        return self._encoder.encode(text)

    def _decode(self, name: str, text: str) -> str:
        if self._encoder is None:
            raise SettingsError(
                name, "[hidden]", "cannot be read, since password.encoder.secret is not set"
            )
        return self._encoder.decode(text)


def _changed(before: Mapping[str, Given], after: Mapping[str, Given]) -> list[str]:
    """The settings whose text is another one than before, or that came or went."""
    return sorted(
        name
        for name in before.keys() | after.keys()
        if (one.text if (one := before.get(name)) else None)
        != (other.text if (other := after.get(name)) else None)
    )
