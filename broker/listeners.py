"""From the broker's settings to what the network room wants: endpoints, limits, certificates."""

import socket
from collections.abc import Mapping
from pathlib import Path

from broker.errors import StartupError
from broker.settings import SecurityProtocol, Settings
from broker.settings.definition import Password
from broker.settings.listeners import parse_pairs
from network.connection_quotas import ConnectionLimits
from network.socket_server import ListenerEndpoint, NetworkLimits
from network.tls.context import ClientAuth, TlsContext, TlsError, TlsSettings
from network.tls.stores import Store
from network.tls.verification import verify_own_certificate


def network_limits(settings: Settings) -> NetworkLimits:
    return NetworkLimits(
        processors_per_listener=settings.num_network_threads,
        handler_workers=settings.num_io_threads,
        queued_requests=settings.queued_max_requests,
        queued_request_bytes=settings.queued_max_request_bytes,
        max_request_size=settings.socket_request_max_bytes,
        max_idle_seconds=settings.connections_max_idle_ms / 1000,
        send_buffer_bytes=settings.socket_send_buffer_bytes,
        receive_buffer_bytes=settings.socket_receive_buffer_bytes,
        connections=connection_limits(settings),
    )


def connection_limits(settings: Settings) -> ConnectionLimits:
    """Addresses of the overrides may be names of hosts; raises OSError for one that is unknown."""
    overrides = parse_pairs(settings.max_connections_per_ip_overrides)
    return ConnectionLimits(
        total=settings.max_connections,
        per_address=settings.max_connections_per_ip,
        by_address={
            address: int(limit)
            for host, limit in overrides.items()
            for address in _addresses(host.strip("[]"))
        },
        by_listener={
            one.name: settings.of_listener(one.name).max_connections
            for one in settings.bound_listeners
            if settings.has_listener_value(one.name, "max.connections")
        },
    )


def tls_contexts(settings: Settings) -> dict[str, TlsContext]:
    """One for each listener that speaks TLS, by its name; raises StartupError."""
    contexts: dict[str, TlsContext] = {}
    for one in settings.bound_listeners:
        if one.protocol.uses_sasl:
            raise StartupError(f"listeners: {one}: SASL listeners are not served so far")
        if one.protocol is not SecurityProtocol.SSL:
            continue
        wanted = tls_settings(settings, one.name)
        try:
            contexts[one.name] = TlsContext(wanted)
            if one.name in (settings.inter_broker_listener, settings.control_plane_listener):
                verify_own_certificate(wanted)
        except TlsError as error:
            raise StartupError(f"listener {one.name}: {error}") from error
    return contexts


def endpoints(settings: Settings, tls: Mapping[str, TlsContext]) -> list[ListenerEndpoint]:
    return [
        ListenerEndpoint(one.name, one.protocol.name, one.host, one.port, tls.get(one.name))
        for one in settings.bound_listeners
    ]


def tls_settings(settings: Settings, listener: str) -> TlsSettings:
    view = settings.of_listener(listener)
    key_store = _store(
        view.ssl_keystore_location,
        view.ssl_keystore_type,
        view.ssl_keystore_password,
        view.ssl_key_password,
    )
    trust_store = _store(
        view.ssl_truststore_location, view.ssl_truststore_type, view.ssl_truststore_password
    )
    return TlsSettings(
        key_store=key_store,
        trust_store=trust_store,
        client_auth=ClientAuth(view.ssl_client_auth),
        enabled_protocols=tuple(view.ssl_enabled_protocols or ()),
        cipher_suites=tuple(view.ssl_cipher_suites or ()),
        checks_host_name=bool(view.ssl_endpoint_identification_algorithm),
    )


def _store(
    location: str | None,
    kind: str,
    password: Password | None,
    key_password: Password | None = None,
) -> Store | None:
    if location is None:
        return None
    return Store(
        Path(location),
        kind,
        None if password is None else password.secret,
        None if key_password is None else key_password.secret,
    )


def _addresses(host: str) -> set[str]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return {str(address[0]) for *_, address in found}
