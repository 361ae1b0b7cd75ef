"""How requests between controller and brokers arrive: by a plain call if both are this broker."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from broker.dispatch import REGISTRY
from broker.services import Services
from controller.cluster import BrokerInfo
from network.client import BrokerConnection
from network.protocol import ErrorCode
from network.protocol.schema import Request, Response
from network.tls.context import TlsContext

logger = logging.getLogger(__name__)


class ControllerLink:
    """Carries the controller's orders to brokers, and brokers' wishes to the controller."""

    def __init__(
        self,
        broker_id: int,
        listener_names: Sequence[str],
        timeout_seconds: float,
        tls: Mapping[str, TlsContext],
    ) -> None:
        """A broker is spoken to on the first of these listeners that it has."""
        self._broker_id = broker_id
        self._listener_names = listener_names
        self._tls = tls
        self._timeout = timeout_seconds
        self._services: Services | None = None
        self._connections: dict[tuple[int, int], BrokerConnection] = {}

    def serve(self, services: Services) -> None:
        """From now on requests to this broker itself can be carried out."""
        self._services = services

    async def send(self, broker: BrokerInfo, request: Request) -> Response:
        """Have a broker carry a request out.

        Raises OSError (of which a TimeoutError is one) or ProtocolError where it fails.
        """
        if broker.id == self._broker_id:
            return await self._carry_out(request)
        try:
            async with asyncio.timeout(self._timeout):
                connection = await self._connection(broker)
                return await connection.ask(request, REGISTRY[request.API_KEY].max_version)
        except TimeoutError:
            await self._disconnect(broker.id)  # a late answer must not pass for the next one's
            raise

    async def close(self) -> None:
        for connection in self._connections.values():
            await connection.close()
        self._connections.clear()

    async def _carry_out(self, request: Request) -> Response:
        if self._services is None:
            raise ConnectionError("this broker is not ready for its controller's requests")
        handler = REGISTRY[request.API_KEY]
        try:
            call: Callable[..., Any] = handler.function
            outcome = call(self._services, None, request)
            response: Response = await outcome if isinstance(outcome, Awaitable) else outcome
        except Exception:  # as another broker would answer; tried again, it would not go better
            logger.exception("Bug in %s from this broker's own controller", handler.api_key.name)
            response = handler.error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR)
        return response

    async def _connection(self, broker: BrokerInfo) -> BrokerConnection:
        """One connection per life of a broker, so that requests stay in order."""
        key = (broker.id, broker.epoch)
        connection = self._connections.get(key)
        if connection is not None and connection.is_open:
            return connection
        await self._disconnect(broker.id)
        endpoint = next(filter(None, map(broker.endpoint, self._listener_names)), None)
        if endpoint is None:
            names = " or ".join(self._listener_names)
            raise ConnectionError(f"broker {broker.id} has no listener {names}")
        tls = self._tls.get(endpoint.listener_name)
        connection = BrokerConnection(
            endpoint.host,
            endpoint.port,
            str(self._broker_id),
            tls=None if tls is None else tls.client_context(),
        )
        await connection.connect()
        self._connections[key] = connection
        return connection

    async def _disconnect(self, broker_id: int) -> None:
        for key in [one for one in self._connections if one[0] == broker_id]:
            await self._connections.pop(key).close()
