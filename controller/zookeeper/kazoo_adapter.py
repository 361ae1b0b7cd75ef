"""kazoo, bent to an event loop: one thread, results and watches on the loop, errors our own.

Owns all that is kazoo's; only this module imports it.
"""

import asyncio
import logging
import select
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from kazoo import client, exceptions, security
from kazoo.handlers import threading as kazoo_threading
from kazoo.protocol import serialization, states
from kazoo.retry import KazooRetry

from controller.session_file import Session
from controller.zookeeper.model import (
    BadVersionError,
    Check,
    Create,
    Delete,
    MultiError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    SessionExpiredError,
    SetData,
    Stat,
    ZooKeeperError,
)

# kazoo reports every attempt to connect; the client says the same once, at each change of state.
_kazoo_logger: Final = logging.getLogger(__name__)
_kazoo_logger.setLevel(logging.ERROR)

_FIRST_RETRY_SECONDS: Final = 0.02
_LONGEST_RETRY_SECONDS: Final = 0.5

_ERRORS: Final[dict[type[BaseException], type[ZooKeeperError]]] = {
    exceptions.NoNodeError: NoNodeError,
    exceptions.NodeExistsError: NodeExistsError,
    exceptions.BadVersionError: BadVersionError,
    exceptions.NotEmptyError: NotEmptyError,
    exceptions.SessionExpiredError: SessionExpiredError,
    exceptions.ConnectionClosedError: SessionExpiredError,
}
_OTHERS_FAILED: Final = (exceptions.RolledBackError, exceptions.RuntimeInconsistency)

# Called in the connection's thread, but on the loop's behalf: new session, or None and whether the
# old one may still live.
StateListener = Callable[[Session | None, bool], None]


class _LoopQueue:
    """Takes callbacks from kazoo's thread and runs them on the loop, many in one wake-up."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._callbacks: deque[Callable[[], object]] = deque()
        self._wake_up_pending = False

    def put(self, callback: Callable[[], object]) -> None:
        self._callbacks.append(callback)
        if not self._wake_up_pending:
            self._wake_up()

    def _wake_up(self) -> None:
        self._wake_up_pending = True
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._run)

    def _run(self) -> None:
        self._wake_up_pending = False  # before the last look, or a late callback would be missed
        try:
            while self._callbacks:
                self._callbacks.popleft()()
        finally:
            if self._callbacks:  # one of them failed, which the loop reports; the rest must run
                self._wake_up()


class _LoopHandler(kazoo_threading.SequentialThreadingHandler):  # type: ignore[misc]
    """Runs kazoo with one thread, the connection's; results and watches come out on the loop."""

    running = True

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.completion_queue = _LoopQueue(loop)

    def start(self) -> None:
        """There are no workers to start."""

    def stop(self) -> None:
        """There are no workers to stop."""

    def dispatch_callback(self, callback: Any) -> None:
        self.completion_queue.put(partial(callback.func, *callback.args))

    def select(
        self, readers: list[Any], writers: list[Any], _: list[Any], timeout: float | None = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """As select.select, without the epoll descriptor that kazoo opens for every call."""
        poll = select.poll()
        by_descriptor = {one.fileno(): one for one in (*readers, *writers)}
        for one in readers:
            poll.register(one, select.POLLIN)
        for one in writers:
            poll.register(one, select.POLLOUT)
        ready = [
            by_descriptor[descriptor]
            for descriptor, _ in poll.poll(None if timeout is None else timeout * 1000)
        ]
        return [r for r in ready if r in readers], [w for w in ready if w in writers], []


def open_kazoo(
    hosts: str,
    session_timeout_seconds: float,
    session: Session | None,
    loop: asyncio.AbstractEventLoop,
    state_changed: StateListener,
) -> Any:
    """A kazoo client, not started, that asks for the given session first."""
    handler = _LoopHandler(loop)
    kazoo = client.KazooClient(
        hosts=hosts,
        timeout=session_timeout_seconds,
        client_id=None if session is None else (session.id, session.password),
        handler=handler,
        connection_retry=KazooRetry(
            max_tries=-1,
            delay=_FIRST_RETRY_SECONDS,
            backoff=1.3,
            max_jitter=0.2,
            max_delay=_LONGEST_RETRY_SECONDS,
        ),
        logger=_kazoo_logger,
    )

    def listen(state: str) -> None:
        current = Session(*kazoo.client_id) if state == states.KazooState.CONNECTED else None
        suspended = state == states.KazooState.SUSPENDED
        handler.completion_queue.put(partial(state_changed, current, suspended))

    kazoo.add_listener(listen)
    return kazoo


def is_connection_loss(error: BaseException | None) -> bool:
    return type(error) is exceptions.ConnectionLoss


def is_change(event: Any) -> bool:
    """Whether a watch fired for a change; kazoo also calls them all when it drops them."""
    return bool(event.type != states.EventType.NONE)


def translated(error: BaseException, path: str) -> ZooKeeperError:
    kind = _ERRORS.get(type(error), ZooKeeperError)
    what = type(error).__name__.removesuffix("Error")
    return kind(f"{path}: {what}{f' ({error})' if str(error) else ''}")


def to_stat(stat: Any) -> Stat:
    return Stat(stat.czxid, stat.version, stat.ephemeralOwner, stat.ctime)


def commit(kazoo: Any, operations: Sequence[tuple[str, Operation]]) -> Any:
    """Send operations, each with its path on the server, as one transaction."""
    transaction = client.TransactionRequest(kazoo)
    transaction.operations = [_encoded(path, operation) for path, operation in operations]
    return transaction.commit_async()


def _encoded(path: str, operation: Operation) -> Any:
    match operation:
        case Create(_, data, ephemeral):
            flags = int(ephemeral)
            return serialization.Create(path, data, security.OPEN_ACL_UNSAFE, flags)
        case SetData(_, new_data, version):
            return serialization.SetData(path, new_data, version)
        case Delete(_, version):
            return serialization.Delete(path, version)
        case Check(_, version):
            return serialization.CheckVersion(path, version)


def committed(operations: Sequence[Operation], answers: list[Any]) -> list[Stat | None]:
    """The stats of the operations that set data; raises if the transaction was refused."""
    for index, answer in enumerate(answers):
        if isinstance(answer, Exception) and not isinstance(answer, _OTHERS_FAILED):
            raise MultiError(index, translated(answer, operations[index].path))
    return [
        to_stat(answer) if isinstance(operation, SetData) else None
        for operation, answer in zip(operations, answers, strict=True)
    ]
