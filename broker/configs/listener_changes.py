"""Listeners that come and go while the broker runs, and the addresses that clients are told.

As in Kafka a listener is known by its name: one that stays keeps its socket and its protocol.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from broker.errors import StartupError
from broker.listeners import endpoints, tls_contexts
from broker.settings import Settings, SettingsError
from network.socket_server import SocketServer
from network.tls.context import TlsContext

_NAMES: Final = frozenset({"listeners", "advertised.listeners", "listener.security.protocol.map"})


class ListenerChanges:
    """Opens, closes and advertises listeners."""

    def __init__(
        self,
        sockets: SocketServer,
        contexts: dict[str, TlsContext],
        advertise: Callable[[], Awaitable[None]],
    ) -> None:
        """`contexts` are those of all who speak TLS; `advertise` registers anew what holds then."""
        self._sockets = sockets
        self._contexts = contexts
        self._advertise = advertise

    def concerns(self, name: str) -> bool:
        return name in _NAMES

    def check(self, now: Settings, wanted: Settings) -> None:
        before = {one.name: one.protocol for one in now.bound_listeners}
        for one in wanted.bound_listeners:
            if before.get(one.name, one.protocol) is not one.protocol:
                raise wanted.error(
                    "listener.security.protocol.map",
                    f"the security protocol of the existing listener {one.name} cannot be updated",
                )
        self._new_contexts(now, wanted)

    async def apply(self, before: Settings, now: Settings) -> None:
        contexts = self._new_contexts(before, now)
        names = {one.name for one in now.bound_listeners}
        for gone in [one.name for one in before.bound_listeners if one.name not in names]:
            await self._sockets.remove_listener(gone)
            self._contexts.pop(gone, None)
        self._contexts |= contexts
        for endpoint in endpoints(now, self._contexts):
            if endpoint.name not in self._sockets.ports:
                self._sockets.add_listener(endpoint)
        await self._advertise()

    def _new_contexts(self, before: Settings, now: Settings) -> dict[str, TlsContext]:
        """What the listeners that come need for TLS. Raises SettingsError."""
        known = {one.name for one in before.bound_listeners}
        if {one.name for one in now.bound_listeners} <= known:
            return {}
        try:
            found = tls_contexts(now)
        except StartupError as error:
            raise SettingsError("listeners", None, str(error)) from error
        return {name: context for name, context in found.items() if name not in known}
