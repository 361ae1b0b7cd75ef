"""What every stock client writes and must read back, and the exchange that all go through."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.support.broker import BrokerProcess

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS = 10_000
PARTITIONS = 3
FIRST_TIMESTAMP = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Sample:
    """A record as a client sees it."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp: int


Content = list[list[Sample]]


def make_content(seed: int, count: int = RECORDS) -> Content:
    """Records by partition: keys, values of uneven size, headers and timestamps all differ."""
    chance = random.Random(seed)
    content: Content = [[] for _ in range(PARTITIONS)]
    for number in range(count):
        value = chance.randbytes(chance.randrange(20)) + b"value %d " % number * chance.randrange(9)
        content[number % PARTITIONS].append(
            Sample(
                key=b"key %d" % (number % 100),
                value=value or b"empty",
                headers=(("number", b"%d" % number), ("seed", b"%d" % seed)),
                timestamp=FIRST_TIMESTAMP + 7 * number,
            )
        )
    return content


class Client(Protocol):
    """A stock client, as the exchange drives it."""

    def create_topic(self, bootstrap: str, topic: str) -> None: ...

    def produce(self, bootstrap: str, topic: str, codec: str, content: Content) -> None: ...

    def consume(self, bootstrap: str, topic: str, counts: Sequence[int]) -> Content: ...


def exchange(
    client: Client,
    data: Path,
    make: Callable[[int], Content] = make_content,
    overrides: Mapping[str, str] | None = None,
) -> None:
    """Write every codec, read it back, restart, read again, kill, read again."""
    broker = BrokerProcess(data, overrides)
    expected = {codec: make(seed) for seed, codec in enumerate(CODECS)}

    def read_everything() -> None:
        for codec, content in expected.items():
            counts = [len(partition) for partition in content]
            assert client.consume(broker.bootstrap, f"topic-{codec}", counts) == content, codec

    try:
        broker.start()
        for codec, content in expected.items():
            client.create_topic(broker.bootstrap, f"topic-{codec}")
            client.produce(broker.bootstrap, f"topic-{codec}", codec, content)
        read_everything()
        assert broker.stop() == 0, broker.output
        broker.start()
        read_everything()
        broker.kill()
        broker.start()
        read_everything()
        assert broker.stop() == 0, broker.output
    finally:
        broker.kill()
