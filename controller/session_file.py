"""The ZooKeeper session that a broker holds, remembered beside its data.

A broker that was killed leaves its session alive until it times out, and with it /brokers/ids/N and
/controller. Whoever knows the session's id and password may take it over and close it; this module
owns the file in which the broker keeps them for its next start.
"""

import json
import logging
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Session:
    id: int
    password: bytes


class SessionFile:
    """Keeps one session in a file that only its owner may read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> Session | None:
        try:
            content = json.loads(self._path.read_text())
            return Session(int(content["session_id"]), bytes.fromhex(content["password"]))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            logger.warning("ignoring the unreadable session file %s: %s", self._path, error)
            return None

    def save(self, session: Session) -> None:
        content = {"session_id": session.id, "password": session.password.hex()}
        unfinished = self._path.with_name(self._path.name + ".tmp")
        unfinished.unlink(missing_ok=True)
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w") as file:
            json.dump(content, file)
        unfinished.replace(self._path)

    def forget(self) -> None:
        with suppress(FileNotFoundError):
            self._path.unlink()
