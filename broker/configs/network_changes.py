"""Connections and certificates, at the settings that hold now."""

from collections.abc import Mapping
from typing import Final

from broker.listeners import connection_limits, tls_settings
from broker.settings import Settings, SettingsError
from broker.settings.dynamic import base_name
from broker.settings.settings import listener_prefix
from network.socket_server import SocketServer
from network.tls.context import TlsContext, TlsError
from network.tls.verification import verify_own_certificate

_LIMITS: Final = frozenset(
    {"max.connections", "max.connections.per.ip", "max.connections.per.ip.overrides"}
)


class ConnectionLimitChanges:
    """`max.connections` and its relatives, for the broker and for single listeners."""

    def __init__(self, sockets: SocketServer) -> None:
        self._sockets = sockets

    def concerns(self, name: str) -> bool:
        return base_name(name) in _LIMITS

    def check(self, _now: Settings, wanted: Settings) -> None:
        try:
            connection_limits(wanted)
        except OSError as error:
            raise wanted.error("max.connections.per.ip.overrides", str(error)) from error

    async def apply(self, _before: Settings, now: Settings) -> None:
        self._sockets.update_limits(connection_limits(now))


class CertificateChanges:
    """Key and trust stores of the listeners that speak TLS; open connections keep theirs."""

    def __init__(self, contexts: Mapping[str, TlsContext]) -> None:
        self._contexts = contexts

    def concerns(self, name: str) -> bool:
        return base_name(name).startswith("ssl.")

    def check(self, _now: Settings, wanted: Settings) -> None:
        for listener, context in self._contexts.items():
            settings = tls_settings(wanted, listener)
            if settings == context.settings and not context.files_have_changed:
                continue
            try:
                context.check_replacement(settings)
                if listener in (wanted.inter_broker_listener, wanted.control_plane_listener):
                    verify_own_certificate(settings)
            except TlsError as error:
                raise _refusal(listener, error) from error

    async def apply(self, _before: Settings, now: Settings) -> None:
        for listener, context in self._contexts.items():
            settings = tls_settings(now, listener)
            if settings != context.settings or context.files_have_changed:
                context.reload(settings)

    def reload_files(self) -> None:
        """Settings are the same, what they name may not be. Raises SettingsError."""
        for listener, context in self._contexts.items():
            if not context.files_have_changed:
                continue
            try:
                context.check_replacement(context.settings)
                context.reload()
            except TlsError as error:
                raise _refusal(listener, error) from error


def _refusal(listener: str, error: TlsError) -> SettingsError:
    return SettingsError(f"{listener_prefix(listener)}ssl", None, str(error))
