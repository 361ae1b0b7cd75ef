"""Asks a port whether a ZooKeeper serves there, and on which data."""

import asyncio
import re
from pathlib import Path
from typing import Final, NamedTuple

_NOT_SERVING: Final = "not currently serving"
_DATA_DIRECTORY: Final = re.compile(r"^dataDir=(.*)[/\\]version-2$", re.MULTILINE)
_PROBE_SECONDS: Final = 1.0


class Answer(NamedTuple):
    """The data directory of the server that serves, or that what answers is no ZooKeeper."""

    directory: Path | None = None
    is_stranger: bool = False


async def ask_for_data_directory(port: int) -> Answer:
    try:
        async with asyncio.timeout(_PROBE_SECONDS):
            text = await _ask_for_configuration(port)
    except (OSError, TimeoutError):
        return Answer()
    if not text or _NOT_SERVING in text:
        return Answer()
    found = _DATA_DIRECTORY.search(text)
    return Answer(is_stranger=True) if found is None else Answer(Path(found[1]))


async def _ask_for_configuration(port: int) -> str:
    """What the server says of itself, read as far as it matters.

    Not to its end: a server asked too early says so and then forgets to close the connection.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"conf")
        text = ""
        while _NOT_SERVING not in text and not _DATA_DIRECTORY.search(text):
            received = await reader.read(4096)
            if not received:
                break
            text += received.decode(errors="replace")
        return text
    finally:
        writer.close()
