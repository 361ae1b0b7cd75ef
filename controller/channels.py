"""The controller's way to each broker: requests in order, one at a time, tried until they arrive.

Owns one queue and task per broker. Knows nothing of sockets (it is handed a callable that sends)
and nothing of what the requests say.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from controller.cluster import BrokerInfo
from network.protocol.schema import Request, Response

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 0.1
_FAILURES_BETWEEN_WARNINGS: Final = 100

Send = Callable[[BrokerInfo, Request], Awaitable[Response]]
Answered = Callable[[Response], None]


class _Channel:
    """Requests on their way to one registration of a broker."""

    def __init__(self, broker: BrokerInfo, send: Send) -> None:
        self._broker = broker
        self._send = send
        self._queue: asyncio.Queue[tuple[Request, Answered | None]] = asyncio.Queue()
        self._task = asyncio.create_task(self._run(), name=f"controller-to-broker-{broker.id}")

    def put(self, request: Request, answered: Answered | None) -> None:
        self._queue.put_nowait((request, answered))

    def close(self) -> asyncio.Task[None]:
        self._task.cancel()
        return self._task

    async def _run(self) -> None:
        while True:
            request, answered = await self._queue.get()
            response = await self._deliver(request)
            if answered is not None:
                answered(response)

    async def _deliver(self, request: Request) -> Response:
        """Try until the broker answers; if it is gone, its channel will be closed."""
        failures = 0
        while True:
            try:
                return await self._send(self._broker, request)
            except Exception as error:
                if failures % _FAILURES_BETWEEN_WARNINGS == 0:
                    logger.warning(
                        "%s does not reach broker %d (%r); trying on",
                        type(request).__name__,
                        self._broker.id,
                        error,
                    )
                failures += 1
                await asyncio.sleep(_RETRY_SECONDS)


class Channels:
    """The channels to all live brokers."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._channels: dict[int, _Channel] = {}

    def open(self, broker: BrokerInfo) -> None:
        self.close(broker.id)
        self._channels[broker.id] = _Channel(broker, self._send)

    def close(self, broker_id: int) -> None:
        """Drop what is still on its way to a broker that is gone."""
        channel = self._channels.pop(broker_id, None)
        if channel is not None:
            channel.close()

    async def close_all(self) -> None:
        closing = [channel.close() for channel in self._channels.values()]
        self._channels.clear()
        await asyncio.gather(*closing, return_exceptions=True)

    def put(self, broker_id: int, request: Request, answered: Answered | None = None) -> None:
        """Queue a request; one to a broker that has just gone is dropped, as it would be lost."""
        channel = self._channels.get(broker_id)
        if channel is None:
            logger.debug("no channel to broker %d, dropping %r", broker_id, request)
            return
        channel.put(request, answered)
