import asyncio

from broker.transactions.producer_ids import BLOCK_SIZE, ProducerIds


class Blocks:
    """Hands out blocks, each after a turn of the loop, and fails when told so."""

    def __init__(self) -> None:
        self.claimed = 0
        self.is_away = False

    async def claim_producer_ids(self, broker_id: int, count: int) -> range:
        assert broker_id == 7
        await asyncio.sleep(0)
        if self.is_away:
            raise ConnectionError
        first, self.claimed = self.claimed, self.claimed + count
        return range(first, first + count)


def test_many_that_ask_at_once_get_different_ids_and_claim_no_block_in_vain() -> None:
    async def ask() -> None:
        blocks = Blocks()
        ids = ProducerIds(7, blocks)
        given = await asyncio.gather(*(ids.next() for _ in range(2 * BLOCK_SIZE)))
        assert sorted(given) == list(range(2 * BLOCK_SIZE))
        assert blocks.claimed == 2 * BLOCK_SIZE
        assert await ids.next() == 2 * BLOCK_SIZE

    asyncio.run(ask())


def test_one_that_gives_up_waiting_leaves_the_others_their_block() -> None:
    async def ask() -> None:
        ids = ProducerIds(7, Blocks())
        first, second = asyncio.create_task(ids.next()), asyncio.create_task(ids.next())
        await asyncio.sleep(0)
        first.cancel()
        assert await second == 0

    asyncio.run(ask())


def test_a_claim_that_failed_is_tried_again_by_the_next_to_ask() -> None:
    async def ask() -> None:
        blocks = Blocks()
        ids = ProducerIds(7, blocks)
        blocks.is_away = True
        failures = await asyncio.gather(ids.next(), ids.next(), return_exceptions=True)
        assert [type(one) for one in failures] == [ConnectionError, ConnectionError]
        blocks.is_away = False
        assert await ids.next() == 0

    asyncio.run(ask())
