"""Producer ids: numbers that no other producer of the cluster has or will ever have.

Brokers claim them in blocks (/latest_producer_id_block) and hand them out one by one. What a broker
has not handed out when it ends is lost, never given twice. Knows nothing of transactions.
"""

import asyncio
import logging
from typing import Protocol

logger = logging.getLogger(__name__)

BLOCK_SIZE = 1000


class BlockStore(Protocol):
    """Where blocks are claimed."""

    async def claim_producer_ids(self, broker_id: int, count: int) -> range: ...


class ProducerIds:
    """The ids that this broker may hand out."""

    def __init__(self, broker_id: int, store: BlockStore) -> None:
        self._broker_id = broker_id
        self._store = store
        self._block = range(0)
        self._claim: asyncio.Task[None] | None = None

    async def claim_first_block(self) -> None:
        """As Kafka does when a broker starts, so that the first producer need not wait."""
        await self._claim_block()

    async def next(self) -> int:
        """An id; many may ask while one claims the next block."""
        while not self._block:
            if self._claim is None:
                self._claim = asyncio.create_task(self._claim_block())
                self._claim.add_done_callback(self._claimed)
            await asyncio.shield(self._claim)
        producer_id = self._block[0]
        self._block = self._block[1:]
        return producer_id

    async def _claim_block(self) -> None:
        self._block = await self._store.claim_producer_ids(self._broker_id, BLOCK_SIZE)
        logger.info("Acquired the producer ids %d to %d", self._block[0], self._block[-1])

    def _claimed(self, _: "asyncio.Task[None]") -> None:
        self._claim = None
