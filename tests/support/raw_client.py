"""A client that speaks single requests of any version, where stock clients choose their own."""

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from network.client import BrokerConnection
from network.protocol.schema import Request
from storage.records import BatchBuilder, Codec, iter_batches, iter_records
from storage.records.legacy_builder import LegacyBuilder
from storage.records.record import Record

TIMEOUT_SECONDS = 30.0

T = TypeVar("T")


class RawClient:
    """A connection with a loop of its own, for tests that are not asynchronous."""

    def __init__(self, port: int, client_id: str = "raw") -> None:
        self._loop = asyncio.new_event_loop()
        self._connection = BrokerConnection("127.0.0.1", port, client_id)

    def __enter__(self) -> Self:
        self._run(self._connection.connect())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._run(self._connection.close())
        self._loop.close()

    def ask(self, message: Request, version: int) -> Any:
        return self._run(self._connection.ask(message, version))

    def tell(self, message: Request, version: int) -> None:
        self._run(self._connection.tell(message, version))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(asyncio.wait_for(work, TIMEOUT_SECONDS))


def make_batch(
    *values: bytes, timestamp: int = 1_700_000_000_000, codec: Codec = Codec.NONE
) -> bytes:
    """One record batch of magic 2."""
    builder = BatchBuilder(codec=codec)
    for number, value in enumerate(values):
        builder.append(timestamp + number, None, value)
    return bytes(builder.build())


def read_records(data: bytes | memoryview | None) -> list[Record]:
    """Every record of a fetched set; a batch that is cut off at the end counts as not there."""
    return [record for batch in iter_batches(data or b"") for record in iter_records(batch)]


def make_messages(magic: int, *values: bytes, timestamp: int = 1_700_000_000_000) -> bytes:
    """Messages of magic 0 or 1, uncompressed."""
    builder = LegacyBuilder(magic, base_offset=0)
    for number, value in enumerate(values):
        builder.append(timestamp + number, None, value, number)
    return bytes(builder.build())
