"""Records that show what formats can hold: nulls, empties, headers, sizes, times out of order.

The same seed gives the same records. Must not know who writes them.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

FIRST_TIMESTAMP: Final = 1_600_000_000_000

Headers = tuple[tuple[str, bytes | None], ...]

_HEADERS: Final[tuple[Headers, ...]] = (
    (),
    (("trace", b"7"),),
    (("trace", b"8"), ("trace", b"9"), ("empty", b"")),
    (("naïve", "Ω".encode()), ("nothing", None)),
)
_WORDS: Final = b"castle village bridge landlord messenger telephone snow school".split()


@dataclass(frozen=True, slots=True)
class Sample:
    """A record as a producer is handed it."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Samples:
    """An endless supply of records."""

    def __init__(
        self,
        seed: str,
        *,
        with_headers: bool = True,
        always_keyed: bool = False,
        first_timestamp: int = FIRST_TIMESTAMP,
    ) -> None:
        self._random = random.Random(seed)
        self._with_headers = with_headers
        self._always_keyed = always_keyed
        self._first_timestamp = first_timestamp
        self._count = 0

    def take(self, count: int) -> list[Sample]:
        return [self._next() for _ in range(count)]

    def batches(self, count: int, largest: int = 8) -> Iterator[list[Sample]]:
        """Groups of one to `largest` records."""
        for _ in range(count):
            yield self.take(self._random.randint(1, largest))

    def _next(self) -> Sample:
        chance = self._random
        self._count += 1
        key: bytes | None = b"key-%d" % chance.randrange(20)
        if not self._always_keyed:
            key = chance.choice((None, b"", key, key, key))
        headers = chance.choice(_HEADERS) if self._with_headers else ()
        # Mostly growing, sometimes equal or lower than before, as clocks of several clients are.
        timestamp = self._first_timestamp + self._count * 100 + chance.choice((0, 0, -100, -450, 5))
        return Sample(timestamp, key, self._value(), headers)

    def _value(self) -> bytes | None:
        chance = self._random
        kind = chance.randrange(12)
        if kind == 0:
            return None
        if kind == 1:
            return b""
        if kind == 2:
            return chance.randbytes(chance.randrange(1, 400))
        return b" ".join(chance.choices(_WORDS, k=chance.randrange(1, 30)))
