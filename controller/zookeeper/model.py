"""What the client speaks: errors, session events, nodes and the operations of a transaction.

Plain values; knows neither kazoo nor any path.
"""

import enum
from dataclasses import dataclass
from typing import Final, NamedTuple

ANY_VERSION: Final = -1


class ZooKeeperError(Exception):
    """A request failed; the message says what ZooKeeper said, and of which path."""


class NoNodeError(ZooKeeperError):
    """The node, or the parent of the node to create, is not there."""


class NodeExistsError(ZooKeeperError):
    """The node to create is there already."""


class BadVersionError(ZooKeeperError):
    """The node has another version than the one that the write was conditional on."""


class NotEmptyError(ZooKeeperError):
    """The node to delete has children."""


class SessionExpiredError(ZooKeeperError):
    """The session ended before the request was answered."""


class ConnectError(ZooKeeperError):
    """No session could be had within the time allowed."""


class SessionEvent(enum.Enum):
    ESTABLISHED = "a new session: ephemeral nodes of an earlier one are gone"
    SUSPENDED = "the connection is lost; the session may live on"
    RESUMED = "connected again in the same session"
    EXPIRED = "the session is gone, with its ephemeral nodes; a new one will follow"


class Stat(NamedTuple):
    czxid: int
    version: int
    ephemeral_owner: int
    created_ms: int


class Node(NamedTuple):
    data: bytes
    stat: Stat


@dataclass(frozen=True, slots=True)
class Create:
    path: str
    data: bytes | None = None
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class SetData:
    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    path: str
    version: int


Operation = Create | SetData | Delete | Check


class MultiError(ZooKeeperError):
    """None of a transaction's operations was done; ``cause`` is why, for the one at ``index``."""

    def __init__(self, index: int, cause: ZooKeeperError) -> None:
        super().__init__(f"operation {index}: {cause}")
        self.index = index
        self.cause = cause
