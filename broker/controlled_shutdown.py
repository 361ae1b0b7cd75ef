"""Before a broker stops: the controller is asked to let others lead what this broker leads."""

import asyncio
import logging
from dataclasses import dataclass

from broker.controller_link import ControllerLink
from broker.services import Services
from controller.metadata_store import MetadataStore
from controller.zookeeper import ZooKeeperError
from network.protocol import ErrorCode, ProtocolError
from network.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)

logger = logging.getLogger(__name__)


class _NotDoneError(Exception):
    """The controller can't be asked, or could not move all leadership away."""


@dataclass(frozen=True, slots=True)
class ControlledShutdown:
    """Asks the controller, whoever that is, several times if need be; never fails a stop."""

    services: Services
    store: MetadataStore
    link: ControllerLink

    async def run(self) -> None:
        settings = self.services.settings
        if not settings.controlled_shutdown_enable:
            return
        logger.info("Starting controlled shutdown")
        retries = settings.controlled_shutdown_max_retries
        for left in reversed(range(retries)):
            try:
                await self._ask()
            except (_NotDoneError, ZooKeeperError, OSError, TimeoutError, ProtocolError) as error:
                logger.warning("Controlled shutdown was not possible: %r", error)
            else:
                logger.info("Controlled shutdown succeeded")
                return
            if not left or self._nobody_else_can_lead():
                break
            await asyncio.sleep(settings.controlled_shutdown_retry_backoff_ms / 1000)
        logger.warning("Stopping without having handed over all leadership")

    async def _ask(self) -> None:
        """Raises whatever keeps leadership here."""
        if not self.store.client.is_connected:
            raise _NotDoneError("ZooKeeper is away, so the controller is not known")
        controller = await self.store.controller_id()
        broker = None if controller is None else await self.store.broker(controller)
        if broker is None:
            raise _NotDoneError("there is no controller at present")
        services = self.services
        response = await self.link.send(
            broker,
            ControlledShutdownRequest(
                broker_id=services.broker_id, broker_epoch=services.broker_epoch
            ),
        )
        assert isinstance(response, ControlledShutdownResponse)
        if response.error_code != ErrorCode.NONE:
            raise _NotDoneError(f"the controller refused: {ErrorCode(response.error_code).name}")
        if response.remaining_partitions:
            kept = [
                f"{one.topic_name}-{one.partition_index}" for one in response.remaining_partitions
            ]
            raise _NotDoneError(f"nobody else can lead {', '.join(kept)}")

    def _nobody_else_can_lead(self) -> bool:
        """Alone, or cut off from ZooKeeper, waiting would change nothing."""
        return not self.store.client.is_connected or self.services.metadata.brokers.keys() <= {
            self.services.broker_id
        }
