"""A small asyncio client of ZooKeeper; the only room's corner that knows kazoo.

Owns the connection and its session. Knows no path and no format of what is stored: that is
znodes.py's.
"""

from controller.session_file import Session, SessionFile
from controller.zookeeper.client import ZooKeeperClient
from controller.zookeeper.model import (
    ANY_VERSION,
    BadVersionError,
    Check,
    ConnectError,
    Create,
    Delete,
    MultiError,
    Node,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    SessionEvent,
    SessionExpiredError,
    SetData,
    Stat,
    ZooKeeperError,
)

__all__ = [
    "ANY_VERSION",
    "BadVersionError",
    "Check",
    "ConnectError",
    "Create",
    "Delete",
    "MultiError",
    "Node",
    "NodeExistsError",
    "NoNodeError",
    "NotEmptyError",
    "Operation",
    "Session",
    "SessionEvent",
    "SessionExpiredError",
    "SessionFile",
    "SetData",
    "Stat",
    "ZooKeeperClient",
    "ZooKeeperError",
]
