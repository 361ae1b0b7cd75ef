"""The bounded queue between connections and handler workers.

An idle worker takes a request at once, in the turn of the loop in which it arrived: that saves two
trips through the loop, most of the cost of a small request. The queue fills when all workers are
busy or when a connection has used up its slice. A full queue refuses; the connection then keeps its
request, stays muted and is called back when there is room.

Some APIs are patient: their requests come in crowds (hundreds of members join a group at once) and
each costs more than others do. They have a backlog of their own, which is worked off in short
slices; between two slices everybody else has their turn, and nobody waits for the crowd.

The handler is a plain callable. It returns None when it has answered or parked the request
(somebody answers it later), or an awaitable when the worker must stay with it until it is done.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Container
from time import perf_counter
from typing import TYPE_CHECKING, TypeAlias

from network.backlog import Backlog
from network.metrics import IdleMeter, RequestMetrics

if TYPE_CHECKING:
    from network.request import Request

logger = logging.getLogger(__name__)

Handler: TypeAlias = "Callable[[Request], Awaitable[None] | None]"

REQUESTS_PER_TURN = 64
PATIENT_SLICE_SECONDS = 0.001


class RequestChannel:
    """Requests that no worker has taken yet, and the workers that drain them."""

    def __init__(
        self,
        handler: Handler,
        *,
        workers: int,
        capacity: int,
        patient_apis: Container[int] = frozenset(),
    ) -> None:
        """`capacity` holds for patient requests and for the others, each by themselves."""
        self._handler = handler
        self._patient_apis = patient_apis
        self._queue = Backlog(capacity)
        self._patient = Backlog(capacity)
        self._is_serving_patient = False
        self._idle: list[HandlerWorker] = []
        self._workers: dict[HandlerWorker, asyncio.Task[None] | None] = {}
        self._running = False
        self.metrics = RequestMetrics()
        self._idle_meter = IdleMeter(perf_counter())
        self.resize(workers)

    def __len__(self) -> int:
        return len(self._queue) + len(self._patient)

    @property
    def idle_workers(self) -> int:
        return len(self._idle)

    @property
    def workers(self) -> int:
        return len(self._workers)

    def idle_ratio(self) -> float:
        """The share of the workers' time that was idle since the last time that this was asked."""
        return self._idle_meter.ratio(
            perf_counter(), self.metrics.handler_seconds(), len(self._workers)
        )

    def start(self) -> None:
        """Let the workers drain what has come in so far, and take what follows."""
        self._running = True
        for worker in self._workers:
            self._employ(worker)
        self._wake_workers()
        self._serve_patient_soon()

    async def stop(self) -> None:
        """End the workers; requests that are still queued are dropped."""
        self._running = False
        self._idle.clear()
        self._queue.clear()
        self._patient.clear()
        tasks = [task for task in self._workers.values() if task is not None]
        self._workers.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def resize(self, workers: int) -> None:
        """Another number of workers; one that is at work leaves when it is done."""
        while len(self._workers) < workers:
            worker = HandlerWorker(self)
            self._workers[worker] = None
            if self._running:
                self._employ(worker)
        for worker in list(self._workers)[workers:]:
            task = self._workers.pop(worker)
            if worker in self._idle:
                self._idle.remove(worker)
                if task is not None:
                    task.cancel()
        self._wake_workers()

    def employs(self, worker: "HandlerWorker") -> bool:
        return worker in self._workers

    def _employ(self, worker: "HandlerWorker") -> None:
        number = list(self._workers).index(worker)
        task = asyncio.create_task(worker.run(), name=f"request-handler-{number}")
        self._workers[worker] = task
        self._idle.append(worker)

    def submit(self, request: "Request", *, direct: bool) -> bool:
        """Hand a request over; False when the queue is full and the caller must keep it."""
        if request.api_key in self._patient_apis:
            taken = self._patient.add(request)
            self._serve_patient_soon()
            return taken
        if direct and self._idle and not self._queue:
            self._run_now(request)
            return True
        taken = self._queue.add(request)
        self._wake_worker()
        return taken

    def when_room(self, request: "Request", callback: Callable[[], None]) -> None:
        """Call back once, in turn, when a request that was refused can be handed over."""
        backlog = self._patient if request.api_key in self._patient_apis else self._queue
        backlog.when_room(callback)

    def take(self) -> "Request | None":
        """The oldest waiting request, for a worker that has nothing to do."""
        return self._queue.take() if self._queue else None

    def handle(self, request: "Request") -> Awaitable[None] | None:
        """Call the handler; whatever it raises costs one connection, never a worker."""
        try:
            work = self._handler(request)
        except Exception:
            logger.exception("Closing %s: its request could not be handled", request.channel)
            request.close_connection()
            return None
        if work is None:
            request.parked()  # unless it has been answered
        return work

    def became_idle(self, worker: "HandlerWorker") -> None:
        self._idle.append(worker)
        self._serve_patient_soon()

    def _serve_patient_soon(self) -> None:
        if self._patient and self._idle and not self._is_serving_patient:
            self._is_serving_patient = True
            asyncio.get_running_loop().call_soon(self._serve_patient)

    def _serve_patient(self) -> None:
        ends = perf_counter() + PATIENT_SLICE_SECONDS
        while self._patient and self._idle:
            self._run_now(self._patient.take())
            if perf_counter() >= ends:
                break
        self._is_serving_patient = False
        self._serve_patient_soon()

    def _run_now(self, request: "Request") -> None:
        worker = self._idle.pop()
        work = self.handle(request)
        if work is None:
            self._idle.append(worker)
        else:
            worker.hand_over(request, work)

    def _wake_workers(self) -> None:
        for _ in range(len(self._queue)):
            self._wake_worker()

    def _wake_worker(self) -> None:
        if self._queue and self._idle:
            self._idle.pop().wake()


class HandlerWorker:
    """One of `num.io.threads` workers: works on one request at a time."""

    def __init__(self, channel: RequestChannel) -> None:
        self._channel = channel
        self._woken = asyncio.Event()
        self._unfinished: tuple[Request, Awaitable[None]] | None = None

    def hand_over(self, request: "Request", work: Awaitable[None]) -> None:
        """Finish what a direct call has begun."""
        self._unfinished = (request, work)
        self._woken.set()

    def wake(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            if self._unfinished is not None:
                request, work = self._unfinished
                self._unfinished = None
                await self._finish(request, work)
            await self._drain()
            if not self._channel.employs(self):
                return
            self._channel.became_idle(self)

    async def _drain(self) -> None:
        handled = 0
        while self._channel.employs(self) and (request := self._channel.take()) is not None:
            work = self._channel.handle(request)
            if work is not None:
                await self._finish(request, work)
            handled += 1
            if handled % REQUESTS_PER_TURN == 0:
                await asyncio.sleep(0)

    async def _finish(self, request: "Request", work: Awaitable[None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            with contextlib.suppress(Exception):
                request.close_connection()
            raise
        except Exception:
            logger.exception("Closing %s: its request could not be handled", request.channel)
            request.close_connection()
