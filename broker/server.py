"""The life of a broker: what is started in which order, and stopped in the reverse one.

Every part that has been started puts its stop on one stack; a failure at any point of the start
unwinds what had been started by then.
"""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from broker.clock import now_ms
from broker.descriptors import raise_descriptor_limit
from broker.errors import StartupError
from broker.garbage import set_aside_what_stays
from broker.java import find_java
from broker.log_flusher import LogFlusher
from broker.settings import Settings
from broker.states import RUNNING, STOPPING, BrokerLife, BrokerState
from broker.topic_configs import TopicConfigs
from controller.embedded_zookeeper import EmbeddedZooKeeper, EmbeddedZooKeeperError
from controller.znodes import MalformedNodeError
from storage.errors import NoLogDirectoryLeftError, StorageError
from storage.log_manager import LogManager

if TYPE_CHECKING:
    from broker.assembly import Assembly

logger = logging.getLogger(__name__)

ZOOKEEPER_SUFFIX = ".zookeeper"


def run(settings: Settings) -> int:
    """Run a broker until SIGINT or SIGTERM; the exit status. Raises StartupError."""
    raise_descriptor_limit()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_serve(settings))


async def _serve(settings: Settings) -> int:
    """Start, wait for a signal or a fatal failure, stop; a signal may also end the start."""
    end = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop_cleanly() -> None:
        end.set()
        loop.remove_signal_handler(signal.SIGINT)  # a second Ctrl-C does not wait

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop_cleanly)
    server = BrokerServer(settings, on_fatal=end.set)
    starting = asyncio.create_task(server.start())
    ending = asyncio.create_task(end.wait())
    await asyncio.wait({starting, ending}, return_when=asyncio.FIRST_COMPLETED)
    if starting.done():
        starting.result()
        await ending
    else:
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await starting
    await server.stop()
    return 1 if server.has_failed else 0


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


class BrokerServer:
    """One broker, from start to stop."""

    def __init__(self, settings: Settings, on_fatal: Callable[[], None]) -> None:
        """`on_fatal` is called when a running broker cannot go on and must be stopped."""
        self.life = BrokerLife()
        self.has_failed = False
        self._settings = settings
        self._on_fatal = on_fatal
        self._flusher = LogFlusher()
        self._stops = contextlib.AsyncExitStack()
        self._assembly: Assembly | None = None

    @property
    def state(self) -> BrokerState:
        return self.life.state

    async def start(self) -> None:
        """Bring everything up, in Kafka's order; what fails on the way is told in one line."""
        logger.info("starting")
        self.life.enter(BrokerState.STARTING)
        self._tell_of_odd_settings()
        try:
            await self._start_parts()
        except asyncio.CancelledError:
            await self.stop()
            raise
        except BaseException as error:
            logger.critical("Fatal error during startup. Prepare to shutdown")
            await self.stop()
            if isinstance(error, EmbeddedZooKeeperError | StorageError | MalformedNodeError):
                raise StartupError(str(error)) from error
            raise
        set_aside_what_stays()
        self.life.enter(BrokerState.RUNNING_AS_BROKER)
        logger.info("started")

    async def stop(self) -> None:
        """Take everything down, last come first gone."""
        if self.state in (BrokerState.NOT_RUNNING, *STOPPING):
            return
        logger.info("shutting down")
        if self._assembly is not None and self.state in RUNNING and not self.has_failed:
            self.life.enter(BrokerState.PENDING_CONTROLLED_SHUTDOWN)
            await self._assembly.hand_over_leadership()
        self.life.enter(BrokerState.BROKER_SHUTTING_DOWN)
        await self._stops.aclose()
        self.life.enter(BrokerState.NOT_RUNNING)
        logger.info("shut down completed")

    async def _start_parts(self) -> None:
        logs = self._open_log_directories()
        zookeeper = await self._launch_zookeeper()
        # ZooKeeper takes half a second to start, and so do these imports.
        from broker.assembly import Assembly

        self._assembly = Assembly(self._settings, logs, self._flusher, self._stops, self.life)
        await self._assembly.start(zookeeper)

    def _open_log_directories(self) -> LogManager:
        loop = asyncio.get_running_loop()

        def directory_failed(path: Path, error: OSError) -> None:  # in whatever thread met it
            loop.call_soon_threadsafe(self._log_directory_failed, path, error)

        try:
            self._logs = LogManager(
                self._settings.log_directories,
                TopicConfigs.default_of(self._settings),
                now_ms,
                threads_per_directory=self._settings.num_recovery_threads_per_data_dir,
                on_directory_failure=directory_failed,
                on_flush_due=self._flusher.flush_due,
                on_roll=self._flusher.rolled,
            )
        except NoLogDirectoryLeftError as error:
            raise StartupError(f"{error}; make it writable, or set log.dirs") from error
        self._stops.callback(self._logs.unlock)
        return self._logs

    def _log_directory_failed(self, path: Path, error: OSError) -> None:
        if not self._logs.live_directories and not self.has_failed:
            self.has_failed = True
            logger.critical("No log directory is left after %s failed: %s", path, error)
            self._on_fatal()
        elif self._assembly is not None:
            self._assembly.log_directory_failed()

    async def _launch_zookeeper(self) -> EmbeddedZooKeeper | None:
        """A ZooKeeper of our own, unless there is another; it starts while we go on."""
        if self._settings.zookeeper_connect:
            return None
        first = self._settings.log_directories[0]
        directory = first.with_name(first.name + ZOOKEEPER_SUFFIX)
        zookeeper = EmbeddedZooKeeper(find_java().java, directory)
        self._stops.push_async_callback(zookeeper.stop)
        try:
            await zookeeper.launch()
        except OSError as error:
            raise StartupError(
                f"{directory}: {error.strerror}; make it writable, or set zookeeper.connect"
            ) from error
        return zookeeper

    def _tell_of_odd_settings(self) -> None:
        settings = self._settings
        for warning in settings.warnings():
            logger.warning("%s", warning)
        if settings.ignored_environment:
            names = ", ".join(settings.ignored_environment)
            logger.info("Variables of the environment that are no settings: %s", names)
        if settings.without_effect:
            names = ", ".join(settings.without_effect)
            logger.info("Recognised, but without effect so far: %s", names)
