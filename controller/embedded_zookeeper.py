"""A ZooKeeper server of the broker's own: Apache ZooKeeper as a child process on loopback.

Owns the child's files (configuration, data, log), its port, its readiness and its end. It is handed
a ``java`` executable and knows nothing of what is stored in ZooKeeper, nor of any client library.
The jars are those that the installed PySpark carries; PySpark itself is never imported.
"""

import asyncio
import fcntl
import importlib.util
import logging
import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from controller import child_guard
from controller.class_archive import ClassArchive, cache_folder
from controller.zookeeper_probe import ask_for_data_directory

logger = logging.getLogger(__name__)

_MAIN_CLASS: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

# log4j-core is left out on purpose: log4j-api's own simple logger writes to standard output, which
# is the log file, and saves a fifth of a second and 10 MB at every start.
_JARS: Final = (
    "zookeeper-[0-9]*.jar",
    "zookeeper-jute-*.jar",
    "slf4j-api-*.jar",
    "log4j-slf4j2-impl-*.jar",
    "log4j-api-*.jar",
    "metrics-core-*.jar",
    "snappy-java-*.jar",
    "commons-io-*.jar",
)

_JVM_OPTIONS: Final = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Xshare:auto",
    "-Xms16m",
    "-Xmx256m",
    "-Dzookeeper.jmx.log4j.disable=true",
    "-Dzookeeper.preAllocSize=4096",  # KB; the default of 64 MB only inflates backups
    "-Dzookeeper.snapCount=10000",  # fewer transactions to replay at the next start
    "-Dlog4j.provider=org.apache.logging.log4j.simple.internal.SimpleProvider",
    "-Dlog4j2.simplelogLevel=INFO",
    "-Dlog4j2.simplelogShowdatetime=true",
)

# Relative paths: the child runs inside its directory, so no path needs the escapes of a .properties
# file. Any session timeout that the broker asks for is granted; the tick is how finely it expires.
_CONFIGURATION: Final = """\
dataDir=./data
clientPort={port}
clientPortAddress=127.0.0.1
maxClientCnxns=0
tickTime=500
minSessionTimeout=500
maxSessionTimeout=3600000
admin.enableServer=false
4lw.commands.whitelist=conf
autopurge.snapRetainCount=3
autopurge.purgeInterval=1
"""

_PORT_ATTEMPTS: Final = 5
_POLL_SECONDS: Final = 0.008
_STOP_GRACE_SECONDS: Final = 5.0
_ARCHIVE_AFTER_SECONDS: Final = 5.0
_HEALTHY_SECONDS: Final = 60.0
_QUICK_DEATHS_ALLOWED: Final = 5
_RESTART_DELAY_SECONDS: Final = 1.0
_LOG_ROLL_BYTES: Final = 8 << 20
_LAST_LOG_LINES: Final = 8


class EmbeddedZooKeeperError(Exception):
    """The embedded ZooKeeper can't be started; the message says why and what to do."""


class _PortLostError(Exception):
    """Another program holds the chosen port."""


def zookeeper_jars() -> list[Path]:
    """The jars that a ZooKeeper server needs, from the installed PySpark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedZooKeeperError(
            "PySpark, whose jars hold ZooKeeper, is not installed: install it or set"
            " zookeeper.connect"
        )
    folder = Path(spec.submodule_search_locations[0]) / "jars"
    jars = []
    for pattern in _JARS:
        found = sorted(folder.glob(pattern))
        if not found:
            raise EmbeddedZooKeeperError(
                f"{folder} has no {pattern}: reinstall PySpark or set zookeeper.connect"
            )
        jars.append(found[-1])
    return jars


def _is_same_file(one: Path, other: Path) -> bool:
    return one.exists() and one.samefile(other)


class EmbeddedZooKeeper:
    """One ZooKeeper server under ``directory``; start it, ask for its address, stop it.

    ``launch`` returns at once and ``wait_until_ready`` when the server answers, so that the broker
    can use the half second between them. Both belong on the thread that lives as long as the
    broker: Linux ties the child's life to the thread that started it.
    """

    def __init__(
        self,
        java: str | os.PathLike[str],
        directory: Path,
        *,
        archive_folder: Path | None = None,
        ready_timeout_seconds: float = 60.0,
    ) -> None:
        self._java = os.fspath(java)
        self._directory = directory.absolute()
        self._archive_folder = archive_folder or cache_folder()
        self._archive: ClassArchive | None = None
        self._archiving: asyncio.Task[None] | None = None
        self._ready_timeout = ready_timeout_seconds
        self._reservation: socket.socket | None = None
        self._lock_file: int | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._log_start = 0
        self.port = 0

    @property
    def connect_string(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log_path(self) -> Path:
        return self._directory / "zookeeper.log"

    @property
    def pid(self) -> int | None:
        """The child's process id, or None while there is none."""
        if self._process is None or self._process.returncode is not None:
            return None
        return self._process.pid

    async def start(self) -> None:
        await self.launch()
        await self.wait_until_ready()

    async def launch(self) -> None:
        """Start the child on a port chosen now; it is not ready yet."""
        self._check_java()
        (self._directory / "data").mkdir(parents=True, exist_ok=True)
        await self._take_directory()
        self._roll_log()
        self._reserve_port()
        await self._spawn()

    async def wait_until_ready(self) -> None:
        """Return once the child answers on its port; raise if it can't be brought to that."""
        try:
            async with asyncio.timeout(self._ready_timeout):
                await self._ready_on_some_port()
        except TimeoutError:
            reason = self._failure(f"did not answer within {self._ready_timeout:g} s")
            await self.stop()
            raise reason from None
        except BaseException:
            await self.stop()
            raise
        self._supervisor = asyncio.create_task(self._supervise(), name="embedded-zookeeper")
        if self._archive is not None and not self._archive.exists:
            self._archiving = asyncio.create_task(self._archive_classes())

    async def stop(self) -> None:
        """End the child, cleanly if it will, and give its port and directory back."""
        for task in (self._supervisor, self._archiving):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        self._supervisor = self._archiving = None
        await self._end_child()
        self._release_port()
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    # -- the child ---------------------------------------------------------------------------

    def _check_java(self) -> None:
        if not os.access(self._java, os.X_OK) or os.path.isdir(self._java):
            raise EmbeddedZooKeeperError(
                f"no Java runtime at {self._java}: install Java 17 or later, or set"
                " zookeeper.connect"
            )

    async def _spawn(self) -> None:
        (self._directory / "zoo.cfg").write_text(_CONFIGURATION.format(port=self.port))
        jars = zookeeper_jars()
        class_path = os.pathsep.join(map(str, jars))
        self._archive = ClassArchive(
            self._java, jars, self._archive_folder, self._directory / "loaded-classes"
        )
        options = (*_JVM_OPTIONS, *self._archive.options())
        command = [self._java, *options, "-cp", class_path, _MAIN_CLASS, "zoo.cfg"]
        assert self._lock_file is not None
        with self._open_log() as log:
            self._process = await asyncio.create_subprocess_exec(
                *child_guard.command(),
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self._directory,
                env={**os.environ, "LC_ALL": "C.UTF-8"},
                start_new_session=True,  # Ctrl-C is for the broker, which needs ZooKeeper to stop
                pass_fds=(self._lock_file,),  # so the directory stays taken while the child lives
            )

    async def _ready_on_some_port(self) -> None:
        for attempts_left in reversed(range(_PORT_ATTEMPTS)):
            try:
                await self._poll_until_ready()
                return
            except _PortLostError:
                if not attempts_left:
                    raise self._failure("found no free port") from None
                await self._end_child()
                self._release_port()
                self._reserve_port()
                await self._spawn()

    async def _poll_until_ready(self) -> None:
        assert self._process is not None
        while not await self._answers():
            if self._process.returncode is not None:
                if "BindException" in self._log_tail():
                    raise _PortLostError
                raise self._failure(f"ended with status {self._process.returncode}")
            await asyncio.sleep(_POLL_SECONDS)

    async def _answers(self) -> bool:
        """Whether our own child answers; a stranger on the port is a lost port."""
        answer = await ask_for_data_directory(self.port)
        if answer.is_stranger or (
            answer.directory is not None
            and not _is_same_file(answer.directory, self._directory / "data")
        ):
            raise _PortLostError
        return answer.directory is not None

    async def _end_child(self) -> None:
        process = self._process
        if process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _STOP_GRACE_SECONDS)
        if process.stdin is not None:
            process.stdin.close()
        self._process = None

    async def _archive_classes(self) -> None:
        """Make the next start faster, once this one has settled."""
        assert self._archive is not None
        try:
            await asyncio.sleep(_ARCHIVE_AFTER_SECONDS)
            await self._archive.create()
        finally:
            self._archive.forget_classes()

    async def _supervise(self) -> None:
        """Bring a child that died under us back on the same port, where its clients wait."""
        loop = asyncio.get_running_loop()
        quick_deaths = 0
        while self._process is not None:
            started = loop.time()
            status = await self._process.wait()
            quick_deaths = quick_deaths + 1 if loop.time() < started + _HEALTHY_SECONDS else 1
            if quick_deaths > _QUICK_DEATHS_ALLOWED:
                logger.critical("%s", self._failure("keeps ending and is not started again"))
                return
            logger.error("%s", self._failure(f"ended with status {status}; starting it again"))
            await asyncio.sleep(_RESTART_DELAY_SECONDS * (quick_deaths - 1))
            await self._spawn()

    # -- port, directory, log ----------------------------------------------------------------

    def _reserve_port(self) -> None:
        """Choose a free port; where the system allows it, hold it for as long as we live.

        Linux lets a second socket with SO_REUSEADDR (as ZooKeeper's has) bind and listen on a port
        that another one merely holds, and hands a held port to nobody else.
        """
        self._reservation = socket.socket()
        self._reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reservation.bind(("127.0.0.1", 0))
        self.port = self._reservation.getsockname()[1]
        if not sys.platform.startswith("linux"):
            self._release_port()

    def _release_port(self) -> None:
        if self._reservation is not None:
            self._reservation.close()
            self._reservation = None

    async def _take_directory(self) -> None:
        """Lock the directory; a child whose broker was killed may take a moment to be gone."""
        self._lock_file = os.open(self._directory / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        deadline = asyncio.get_running_loop().time() + _STOP_GRACE_SECONDS
        while True:
            try:
                fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if asyncio.get_running_loop().time() > deadline:
                    os.close(self._lock_file)
                    self._lock_file = None
                    raise EmbeddedZooKeeperError(
                        f"{self._directory} is in use by another broker: stop it or choose"
                        " another data directory"
                    ) from None
                await asyncio.sleep(_POLL_SECONDS)

    def _roll_log(self) -> None:
        with suppress(FileNotFoundError):
            if self.log_path.stat().st_size > _LOG_ROLL_BYTES:
                self.log_path.replace(self.log_path.with_suffix(".log.1"))

    def _open_log(self) -> BinaryIO:
        log = open(self.log_path, "ab")  # noqa: SIM115 - the caller closes it
        self._log_start = log.tell()
        return log

    def _log_tail(self) -> str:
        """The last lines that this child has logged."""
        with open(self.log_path, "rb") as log:
            log.seek(max(self._log_start, log.seek(0, os.SEEK_END) - 8192))
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(line for line in lines[-_LAST_LOG_LINES:])

    def _failure(self, what: str) -> EmbeddedZooKeeperError:
        tail = self._log_tail()
        too_old = "UnsupportedClassVersion" in tail or "Unrecognized" in tail
        hint = f" ({self._java} may be too old: Java 17 or later is needed)" if too_old else ""
        return EmbeddedZooKeeperError(
            f"the embedded ZooKeeper {what}{hint}; its log, {self.log_path}, ends in:\n{tail}"
        )
