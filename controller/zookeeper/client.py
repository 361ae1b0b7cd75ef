"""The asyncio client: pipelined requests, conditional writes, watches, and a session.

As in Apache Kafka's client, a request that loses its connection is sent again once there is one, so
a create may meet the node that its own first attempt made; what ends a request is an answer, the
end of the session, or ``close``. Knows no path and no format of what is stored.
"""

import asyncio
import heapq
import itertools
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from controller.session_file import Session, SessionFile
from controller.zookeeper import kazoo_adapter
from controller.zookeeper.kazoo_adapter import to_stat
from controller.zookeeper.model import (
    ANY_VERSION,
    ConnectError,
    Node,
    NodeExistsError,
    NoNodeError,
    Operation,
    SessionEvent,
    SessionExpiredError,
    Stat,
    ZooKeeperError,
)

logger = logging.getLogger(__name__)

_CLOSE_SECONDS: Final = 5.0


@dataclass(order=True, slots=True)
class _Request:
    number: int
    send: Callable[[], Any] = field(compare=False)
    convert: Callable[[Any], Any] = field(compare=False)
    path: str = field(compare=False)
    future: asyncio.Future[Any] = field(compare=False)


@dataclass(slots=True)
class _Watch:
    """One path's handler and the callback, the same for every read, that kazoo is given for it."""

    handler: Callable[[], None]
    callback: Callable[[Any], None]


class ZooKeeperClient:
    """One session with an ensemble, from ``connect`` to ``close``, renewed when it expires."""

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_ms: int = 18_000,
        connection_timeout_ms: int | None = None,
        max_in_flight: int = 10,
        session_file: SessionFile | None = None,
    ) -> None:
        self._hosts, _, chroot = connect.partition("/")
        self._chroot = f"/{chroot.strip('/')}" if chroot.strip("/") else ""
        self._session_timeout = session_timeout_ms / 1000
        self._connection_timeout = (connection_timeout_ms or session_timeout_ms) / 1000
        self._max_in_flight = max_in_flight
        self._session_file = session_file
        self._session: Session | None = None
        self._numbers = itertools.count()
        self._waiting: list[_Request] = []
        self._in_flight = 0
        self._connected = False
        self._switching = False  # between sessions of which nobody need hear
        self._closed = False
        self._opened: asyncio.Future[Session] | None = None
        self._node_watches: dict[str, _Watch] = {}
        self._children_watches: dict[str, _Watch] = {}
        self._session_handlers: list[Callable[[SessionEvent], None]] = []
        self._kazoo: Any = None

    @property
    def session_id(self) -> int | None:
        """The id of the session, or None while there is none."""
        return None if self._session is None else self._session.id

    @property
    def is_connected(self) -> bool:
        return self._connected

    # -- session -----------------------------------------------------------------------------

    async def connect(self) -> None:
        """Open a session, having closed the one that a killed predecessor left."""
        self._loop = asyncio.get_running_loop()
        left_over = self._session_file.load() if self._session_file else None
        self._kazoo = kazoo_adapter.open_kazoo(
            self._hosts, self._session_timeout, left_over, self._loop, self._state_changed
        )
        self._switching = True
        try:
            async with asyncio.timeout(self._connection_timeout):
                session = await self._open_session()
                if left_over is not None and session.id == left_over.id:
                    logger.info(
                        "closing session 0x%x of an earlier run", session.id & (1 << 64) - 1
                    )
                    await self._close_session()
                    session = await self._open_session()
                self._switching = False
                self._begin_session(session)
                await self._ensure_chroot()
        except TimeoutError:
            await self.close()
            raise ConnectError(
                f"no connection to ZooKeeper at {self._hosts} within"
                f" {self._connection_timeout * 1000:.0f} ms (zookeeper.connection.timeout.ms)"
            ) from None

    async def close(self) -> None:
        """End the session, which removes its ephemeral nodes at once, and the connection."""
        self._switching = self._closed = True
        was_connected, self._connected = self._connected, False
        if self._kazoo is not None:
            try:
                await asyncio.wait_for(self._close_session(), _CLOSE_SECONDS)
            except TimeoutError:
                was_connected = False
        if was_connected and self._session_file is not None:
            self._session_file.forget()
        elif self._session is not None and not was_connected:
            logger.warning("ZooKeeper does not answer; the session is left to expire")
        self._session = None
        self._fail_waiting("the client is closed")

    def on_session_event(self, handler: Callable[[SessionEvent], None]) -> None:
        """Call the handler, on the loop, at every change of the session after ``connect``."""
        self._session_handlers.append(handler)

    async def _open_session(self) -> Session:
        self._opened = self._loop.create_future()
        self._kazoo.start_async()
        return await self._opened

    async def _close_session(self) -> None:
        """Stop kazoo in a daemon thread: it may have to wait for an ensemble that is gone."""
        closed = self._loop.create_future()

        def stop() -> None:
            self._kazoo.stop()
            self._kazoo.close()
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_set_if_awaited, closed)

        threading.Thread(target=stop, name="zookeeper-close", daemon=True).start()
        await closed

    def _state_changed(self, session: Session | None, suspended: bool) -> None:
        if self._switching:
            if session is not None and self._opened is not None and not self._opened.done():
                self._opened.set_result(session)
            return
        if session is not None:
            self._begin_session(session)
        elif suspended:
            self._connected = False
            logger.warning("the connection to ZooKeeper at %s is lost", self._hosts)
            self._tell(SessionEvent.SUSPENDED)
        else:
            self._connected = False
            self._session = None
            logger.warning("the session with ZooKeeper at %s has expired", self._hosts)
            self._fail_waiting("the session has expired")
            self._tell(SessionEvent.EXPIRED)

    def _begin_session(self, session: Session) -> None:
        resumed = self._session is not None and self._session.id == session.id
        self._session = session
        self._connected = True
        if resumed:
            logger.info("connected to ZooKeeper again, in the same session")
        else:
            logger.info(
                "session 0x%x with ZooKeeper at %s", session.id & (1 << 64) - 1, self._hosts
            )
            if self._session_file is not None:
                self._session_file.save(session)
        self._pump()
        self._tell(SessionEvent.RESUMED if resumed else SessionEvent.ESTABLISHED)
        for watch in [*self._node_watches.values(), *self._children_watches.values()]:
            watch.handler()  # changes went unseen while there was no connection

    def _tell(self, event: SessionEvent) -> None:
        for handler in self._session_handlers:
            handler(event)

    async def _ensure_chroot(self) -> None:
        names = self._chroot.split("/")
        for end in range(2, len(names) + 1):
            path = "/".join(names[:end])
            with suppress(NodeExistsError):
                await self._request(path, partial(self._kazoo.create_async, path, None), str)

    # -- watches -----------------------------------------------------------------------------

    def watch_node(self, path: str, handler: Callable[[], None]) -> None:
        """Have the handler called on the loop after the node came, went or changed.

        ZooKeeper's watches fire once: ``get`` and ``exists`` of the path arm this one, so a handler
        (or what it leads to) reads again. It is also called when changes may have gone unseen.
        """
        self._node_watches[path] = _Watch(handler, partial(self._fired, self._node_watches, path))

    def watch_children(self, path: str, handler: Callable[[], None]) -> None:
        """As ``watch_node``, for the names of the node's children; ``children`` arms it."""
        watches = self._children_watches
        watches[path] = _Watch(handler, partial(self._fired, watches, path))

    def unwatch(self, path: str) -> None:
        self._node_watches.pop(path, None)
        self._children_watches.pop(path, None)

    @staticmethod
    def _fired(watches: dict[str, _Watch], path: str, event: Any) -> None:
        watch = watches.get(path)
        if watch is not None and kazoo_adapter.is_change(event):
            watch.handler()

    @staticmethod
    def _callback(watches: dict[str, _Watch], path: str) -> Callable[[Any], None] | None:
        watch = watches.get(path)
        return None if watch is None else watch.callback

    # -- requests ----------------------------------------------------------------------------

    def get(self, path: str) -> asyncio.Future[Node]:
        watch = self._callback(self._node_watches, path)
        return self._request(
            path,
            lambda: self._kazoo.get_async(self._absolute(path), watch),
            lambda answer: Node(answer[0] or b"", to_stat(answer[1])),
        )

    def exists(self, path: str) -> asyncio.Future[Stat | None]:
        watch = self._callback(self._node_watches, path)
        return self._request(
            path,
            lambda: self._kazoo.exists_async(self._absolute(path), watch),
            lambda answer: None if answer is None else to_stat(answer),
        )

    def children(self, path: str) -> asyncio.Future[list[str]]:
        watch = self._callback(self._children_watches, path)
        return self._request(
            path, lambda: self._kazoo.get_children_async(self._absolute(path), watch), list
        )

    def create(
        self,
        path: str,
        data: bytes | None = None,
        *,
        ephemeral: bool = False,
        sequential: bool = False,
    ) -> asyncio.Future[str]:
        """Create a node; the answer is its path, with its number if it is sequential."""
        return self._request(
            path,
            lambda: self._kazoo.create_async(
                self._absolute(path), data, ephemeral=ephemeral, sequence=sequential
            ),
            self._relative,
        )

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> asyncio.Future[Stat]:
        return self._request(
            path, lambda: self._kazoo.set_async(self._absolute(path), data, version), to_stat
        )

    def delete(self, path: str, version: int = ANY_VERSION) -> asyncio.Future[None]:
        return self._request(
            path, lambda: self._kazoo.delete_async(self._absolute(path), version), lambda _: None
        )

    def multi(self, operations: Sequence[Operation]) -> asyncio.Future[list[Stat | None]]:
        """All of the operations or none; the answers are the stats of those that set data."""

        return self._request(
            operations[0].path,
            lambda: kazoo_adapter.commit(
                self._kazoo, [(self._absolute(one.path), one) for one in operations]
            ),
            partial(kazoo_adapter.committed, operations),
        )

    async def ensure_path(self, path: str) -> None:
        """Create the node and those above it, as far as they are missing."""
        try:
            await self.create(path)
        except NodeExistsError:
            return
        except NoNodeError:
            await self.ensure_path(path.rpartition("/")[0])
            with suppress(NodeExistsError):
                await self.create(path)

    def _absolute(self, path: str) -> str:
        return path if not self._chroot else self._chroot + (path if path != "/" else "")

    def _relative(self, path: str) -> str:
        return path[len(self._chroot) :] or "/"

    def _request(
        self, path: str, send: Callable[[], Any], convert: Callable[[Any], Any]
    ) -> asyncio.Future[Any]:
        future = self._loop.create_future()
        if self._closed:
            future.set_exception(SessionExpiredError(f"{path}: the client is closed"))
            return future
        heapq.heappush(self._waiting, _Request(next(self._numbers), send, convert, path, future))
        self._pump()
        return future

    def _pump(self) -> None:
        """Hand over what may be in flight; kazoo would block the loop with a long queue."""
        while self._connected and self._waiting and self._in_flight < self._max_in_flight:
            request = heapq.heappop(self._waiting)
            self._in_flight += 1
            request.send().rawlink(partial(self._answered, request))

    def _answered(self, request: _Request, result: Any) -> None:
        self._in_flight -= 1
        error = result.exception
        if kazoo_adapter.is_connection_loss(error) and not self._switching:
            self._connected = False  # the change of state follows; until then nothing is sent
            heapq.heappush(self._waiting, request)
            return
        if not request.future.done():
            _resolve(request, result.value, error)
        self._pump()

    def _fail_waiting(self, why: str) -> None:
        waiting, self._waiting = self._waiting, []
        for request in sorted(waiting):
            if not request.future.done():
                request.future.set_exception(SessionExpiredError(f"{request.path}: {why}"))


def _set_if_awaited(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _resolve(request: _Request, value: Any, error: BaseException | None) -> None:
    if error is not None:
        request.future.set_exception(kazoo_adapter.translated(error, request.path))
        return
    try:
        request.future.set_result(request.convert(value))
    except ZooKeeperError as failure:
        request.future.set_exception(failure)
