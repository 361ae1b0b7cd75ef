"""Rules between settings: each value is right by itself, but they must also fit together."""

from typing import TYPE_CHECKING

from broker.settings.definition import InvalidValueError
from broker.settings.kafka_versions import message_format_of
from broker.settings.listeners import parse_pairs, security_protocol

if TYPE_CHECKING:
    from broker.settings.settings import Settings

_MEGABYTE = 1024 * 1024
_UNROUTABLE = "0.0.0.0"


def check_together(settings: "Settings") -> None:
    """Raises SettingsError for the first rule that is broken."""
    _check_identity(settings)
    _check_logs(settings)
    _check_listeners(settings)
    _check_connections(settings)
    _check_replication(settings)


def _check_identity(settings: "Settings") -> None:
    lowest = -1 if settings.broker_id_generation_enable else 0
    if settings.broker_id < lowest:
        raise settings.error("broker.id", f"must be at least {lowest}")
    limit = settings.reserved_broker_max_id
    if settings.broker_id_generation_enable and settings.broker_id > limit:
        raise settings.error("broker.id", f"must not exceed reserved.broker.max.id, {limit}")


def _check_logs(settings: "Settings") -> None:
    if not settings.log_directories:
        raise settings.error("log.dirs", "names no directory; name at least one")
    if settings.effective_log_roll_ms < 1:
        raise settings.error("log.roll.ms", "must be at least 1")
    if settings.effective_log_roll_jitter_ms < 0:
        raise settings.error("log.roll.jitter.ms", "must be at least 0")
    if settings.effective_log_retention_ms == 0:
        name = next(
            name
            for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
            if settings[name] is not None
        )
        raise settings.error(name, "must be at least 1, or -1 for ever")
    threads = settings.log_cleaner_threads
    if threads and settings.log_cleaner_dedupe_buffer_size // threads <= _MEGABYTE:
        raise settings.error(
            "log.cleaner.dedupe.buffer.size", "must be more than 1 MB for each cleaner thread"
        )
    magic = message_format_of(settings.log_message_format_version)
    if message_format_of(settings.inter_broker_protocol_version) < magic:
        raise settings.error(
            "log.message.format.version", "must not be newer than inter.broker.protocol.version"
        )


def _check_listeners(settings: "Settings") -> None:
    bound = [listener.name for listener in settings.bound_listeners]
    published = [listener.name for listener in settings.published_listeners]
    foreign = [name for name in published if name not in bound]
    if foreign:
        raise settings.error(
            "advertised.listeners",
            f"{foreign[0]} is not among the listeners {', '.join(bound)}",
        )
    if any(listener.host == _UNROUTABLE for listener in settings.published_listeners):
        name = "listeners" if settings.advertised_listeners is None else "advertised.listeners"
        raise settings.error(
            name,
            "clients cannot connect to 0.0.0.0; set advertised.listeners to an address they reach",
        )
    _check_inter_broker(settings, published)
    control = settings.control_plane_listener_name
    if control is not None and control.upper() not in published:
        raise settings.error(
            "control.plane.listener.name", f"must be one of {', '.join(published)}"
        )
    if control is not None and control.upper() == settings.inter_broker_listener:
        raise settings.error(
            "control.plane.listener.name", "must differ from the listener between brokers"
        )


def odd_listeners(settings: "Settings") -> list[str]:
    """Advertised addresses that are right, but of no use to the clients that listeners invite."""
    bound = {listener.name: listener.host for listener in settings.bound_listeners}
    return [
        f"advertised.listeners: {listener}: clients on other machines are sent to themselves,"
        f" though {listener.name} listens on {bound[listener.name] or 'all interfaces'};"
        " advertise an address that they reach"
        for listener in settings.published_listeners
        if _is_loopback(listener.host) and not _is_loopback(bound[listener.name])
    ]


def _is_loopback(host: str) -> bool:
    return host.lower() == "localhost" or host == "::1" or host.startswith("127.")


def _check_inter_broker(settings: "Settings", published: list[str]) -> None:
    by_name = "inter.broker.listener.name"
    by_protocol = "security.inter.broker.protocol"
    if by_name in settings.given and by_protocol in settings.given:
        raise settings.error(by_name, f"cannot be set together with {by_protocol}; remove one")
    try:
        security_protocol(settings.security_inter_broker_protocol)
    except InvalidValueError as error:
        raise settings.error(by_protocol, str(error)) from None
    if settings.inter_broker_listener not in published:
        name = by_name if settings.inter_broker_listener_name is not None else by_protocol
        raise settings.error(
            name,
            f"brokers need a listener {settings.inter_broker_listener} among themselves;"
            f" set inter.broker.listener.name to one of {', '.join(published)}",
        )


def _check_connections(settings: "Settings") -> None:
    queued = settings.queued_max_request_bytes
    if 0 < queued < settings.socket_request_max_bytes:
        raise settings.error(
            "queued.max.request.bytes", "must be at least socket.request.max.bytes, or -1"
        )
    overrides = "max.connections.per.ip.overrides"
    try:
        limits = parse_pairs(settings.max_connections_per_ip_overrides)
    except InvalidValueError as error:
        raise settings.error(overrides, str(error)) from None
    if any(not limit.isdecimal() for limit in limits.values()):
        raise settings.error(overrides, "must be pairs of the form address:count")
    if settings.max_connections_per_ip == 0 and not limits:
        raise settings.error("max.connections.per.ip", f"can be 0 only where {overrides} is set")
    idle = settings.connections_max_idle_ms
    if 0 <= idle <= settings.connection_failed_authentication_delay_ms:
        raise settings.error(
            "connections.max.idle.ms", "must exceed connection.failed.authentication.delay.ms"
        )


def _check_replication(settings: "Settings") -> None:
    wait = settings.replica_fetch_wait_max_ms
    if wait > settings.replica_socket_timeout_ms:
        raise settings.error(
            "replica.fetch.wait.max.ms", "must not exceed replica.socket.timeout.ms"
        )
    if wait > settings.replica_lag_time_max_ms:
        raise settings.error("replica.fetch.wait.max.ms", "must not exceed replica.lag.time.max.ms")
    if not -1 <= settings.offsets_commit_required_acks <= settings.offsets_topic_replication_factor:
        raise settings.error(
            "offsets.commit.required.acks",
            "must lie between -1 and offsets.topic.replication.factor",
        )
