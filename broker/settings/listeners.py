"""Listeners as settings name them: NAME://host:port, each name mapped to a security protocol."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from broker.settings.definition import InvalidValueError, split_list

_ADDRESS = re.compile(r"(?P<name>.*)://\[?(?P<host>[0-9a-zA-Z\-%._:]*)\]?:(?P<port>[0-9]+)")
_MAX_PORT = 65535


class SecurityProtocol(Enum):
    """Kafka's numbers of the ways in which a listener is secured."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3

    @property
    def uses_sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


@dataclass(frozen=True, slots=True)
class Listener:
    """An address to listen on or to advertise. An empty host stands for all interfaces, port 0
    for a free port."""

    name: str
    protocol: SecurityProtocol
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def security_protocol(name: str) -> SecurityProtocol:
    try:
        return SecurityProtocol[name.upper()]
    except KeyError:
        choices = ", ".join(protocol.name for protocol in SecurityProtocol)
        raise InvalidValueError(f"no security protocol {name}; use one of {choices}") from None


def parse_pairs(text: str) -> dict[str, str]:
    """`a:1,b:2` as a mapping; a name is all that stands before the last colon."""
    pairs: dict[str, str] = {}
    for entry in split_list(text):
        name, colon, value = entry.rpartition(":")
        if not colon or not name.strip():
            raise InvalidValueError(f"{entry} is no pair of the form name:value")
        pairs[name.strip()] = value.strip()
    return pairs


def parse_protocol_map(text: str) -> dict[str, SecurityProtocol]:
    return {name.upper(): security_protocol(value) for name, value in parse_pairs(text).items()}


def parse_listeners(text: str, protocols: Mapping[str, SecurityProtocol]) -> tuple[Listener, ...]:
    """Listeners with names and ports of their own; raises InvalidValueError."""
    listeners = tuple(_parse_listener(entry, protocols) for entry in split_list(text) if entry)
    if not listeners:
        raise InvalidValueError("names no listener; use the form PLAINTEXT://127.0.0.1:9092")
    names = [listener.name for listener in listeners]
    ports = [listener.port for listener in listeners if listener.port != 0]
    if len(set(names)) < len(names):
        raise InvalidValueError("each listener needs a name of its own")
    if len(set(ports)) < len(ports):
        raise InvalidValueError("each listener needs a port of its own")
    return listeners


def _parse_listener(text: str, protocols: Mapping[str, SecurityProtocol]) -> Listener:
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise InvalidValueError(f"{text} is no listener; use the form PLAINTEXT://127.0.0.1:9092")
    name = match["name"].upper()
    port = int(match["port"])
    if port > _MAX_PORT:
        raise InvalidValueError(f"{port} is no port; use 0 to {_MAX_PORT}")
    if name not in protocols:
        raise InvalidValueError(
            f"listener {name} has no security protocol; add {name}:PLAINTEXT (or another protocol)"
            " to listener.security.protocol.map"
        )
    return Listener(name, protocols[name], match["host"], port)
