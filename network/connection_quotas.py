"""Who may connect: limits for the broker, for each listener and for each address.

The rules are those of Kafka's ConnectionQuotas. An address that has its share is refused. A
listener without a free slot lets newcomers wait in its backlog. The listener between brokers is
protected where there are others: it ignores the broker's limit, and connections of the others make
room for it. Knows numbers and names, no sockets.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

NO_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """`max.connections` and its relatives."""

    total: int = NO_LIMIT
    per_address: int = NO_LIMIT
    by_address: Mapping[str, int] = field(default_factory=dict)
    by_listener: Mapping[str, int] = field(default_factory=dict)

    def of_address(self, address: str) -> int:
        return self.by_address.get(address, self.per_address)

    def of_listener(self, listener: str) -> int:
        return self.by_listener.get(listener, NO_LIMIT)


class ConnectionQuotas:
    """Counts connections and says where there is room."""

    def __init__(self, limits: ConnectionLimits, protected_listener: str | None) -> None:
        """`protected_listener` is None where no other listener could make room."""
        self._limits = limits
        self._protected_listener = protected_listener
        self._by_address: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()
        self._waiting: dict[Callable[[], None], None] = {}
        self.total = 0

    def of_address(self, address: str) -> int:
        return self._by_address[address]

    def of_listener(self, listener: str) -> int:
        return self._by_listener[listener]

    def limit_of_address(self, address: str) -> int:
        return self._limits.of_address(address)

    def is_protected(self, listener: str) -> bool:
        return listener == self._protected_listener

    @property
    def excess(self) -> int:
        """How many connections of unprotected listeners have to go."""
        return max(0, self.total - self._limits.total)

    def has_slot(self, listener: str) -> bool:
        if self._by_listener[listener] >= self._limits.of_listener(listener):
            return False
        return self.is_protected(listener) or self.total < self._limits.total

    def admits(self, address: str) -> bool:
        return self._by_address[address] < self._limits.of_address(address)

    def add(self, listener: str, address: str) -> None:
        self._by_listener[listener] += 1
        self._by_address[address] += 1
        self.total += 1

    def remove(self, listener: str, address: str) -> None:
        self._by_listener[listener] -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]
        self.total -= 1
        self._wake_acceptors()

    def update(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._wake_acceptors()

    def when_slot(self, callback: Callable[[], None]) -> None:
        """Call back, once, when a connection has ended or limits have changed."""
        self._waiting[callback] = None

    def _wake_acceptors(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for callback in waiting:
            callback()
