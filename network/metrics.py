"""What the network counts and times, kept in process until somebody asks.

Every request leaves one row of clock readings; rows are turned into histograms some hundred at a
time, column by column in C, which costs a fraction of updating nine histograms for each. `collect`
yields plain samples in Prometheus' terms; this module knows no exporter.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from operator import sub
from typing import TypeAlias

from network.histogram import BYTES_BOUNDS, SECONDS_BOUNDS, Histogram, Sample
from network.protocol import ApiKey
from network.request import NOT_YET, Request

ROWS_PER_FOLD = 256

TIMES = (
    "request_queue",
    "local",
    "remote",
    "throttle",
    "response_queue",
    "response_send",
    "total",
)
SIZES = ("request", "response")

# received, responded, send begun, send ended, request bytes, response bytes
QuickRow: TypeAlias = tuple[float, float, float, float, int, int]
# received, dequeued, local done, responded, throttled for, send begun, send ended, bytes, bytes
SlowRow: TypeAlias = tuple[float, float, float, float, float, float, float, int, int]


class ApiMetrics:
    """The times and sizes of one API's requests."""

    __slots__ = ("quick", "sizes", "slow", "times")

    def __init__(self) -> None:
        self.quick: list[QuickRow] = []
        """Requests that a worker took at once and answered in the same call."""
        self.slow: list[SlowRow] = []
        """Requests that waited: for a worker, in the purgatory, or for their own await."""
        self.times = {name: Histogram(SECONDS_BOUNDS) for name in TIMES}
        self.sizes = {name: Histogram(BYTES_BOUNDS) for name in SIZES}

    def fold(self) -> None:
        if self.quick:
            self._fold_quick()
        if self.slow:
            self._fold_slow()

    def _fold_quick(self) -> None:
        rows, self.quick = self.quick, []
        received, responded, begun, ended, request, response = zip(*rows, strict=True)
        times = self.times
        for name in ("request_queue", "remote", "throttle"):
            times[name].observe_zeros(len(rows))
        times["local"].observe_all(list(map(sub, responded, received)))
        times["response_queue"].observe_all(list(map(sub, begun, responded)))
        times["response_send"].observe_all(list(map(sub, ended, begun)))
        times["total"].observe_all(list(map(sub, ended, received)))
        self.sizes["request"].observe_all(list(request))
        self.sizes["response"].observe_all(list(response))

    def _fold_slow(self) -> None:
        rows, self.slow = self.slow, []
        received, dequeued, local_done, responded, throttled, begun, ended, request, response = zip(
            *rows, strict=True
        )
        times = self.times
        times["request_queue"].observe_all(list(map(sub, dequeued, received)))
        times["local"].observe_all(list(map(sub, local_done, dequeued)))
        times["remote"].observe_all(list(map(sub, responded, local_done)))
        times["response_queue"].observe_all(list(map(sub, begun, responded)))
        times["response_send"].observe_all(list(map(sub, ended, begun)))
        times["total"].observe_all(list(map(sub, ended, received)))
        times["throttle"].observe_all(list(throttled))
        self.sizes["request"].observe_all(list(request))
        self.sizes["response"].observe_all(list(response))


UNKNOWN_API = -1
_API_NAMES = {int(key): key.name for key in ApiKey}


class RequestMetrics:
    """The requests of one plane, by API."""

    def __init__(self) -> None:
        self._by_api: dict[int, ApiMetrics] = {}

    def _api(self, key: int) -> ApiMetrics:
        """The metrics of an API; unknown keys share one entry, so that none can fill memory."""
        found = self._by_api.get(key)
        if found is None:
            known = key if key in _API_NAMES else UNKNOWN_API
            found = self._by_api.setdefault(known, ApiMetrics())
        return found

    def record(self, request: Request, send_began: float, send_ended: float) -> None:
        """A response has been sent."""
        metrics = self._by_api.get(request.api_key) or self._api(request.api_key)
        if request.local_done_at == NOT_YET and request.dequeued_at == request.received_at:
            metrics.quick.append(
                (
                    request.received_at,
                    request.responded_at,
                    send_began,
                    send_ended,
                    request.frame_bytes,
                    request.response_bytes,
                )
            )
            if len(metrics.quick) >= ROWS_PER_FOLD:
                metrics.fold()
        else:
            metrics.slow.append(
                (
                    request.received_at,
                    request.dequeued_at,
                    request.local_done_at or request.responded_at,
                    request.responded_at,
                    request.throttle_seconds,
                    send_began,
                    send_ended,
                    request.frame_bytes,
                    request.response_bytes,
                )
            )
            if len(metrics.slow) >= ROWS_PER_FOLD:
                metrics.fold()

    def handler_seconds(self) -> float:
        """What workers have spent on requests in all, those still at work apart."""
        for one in self._by_api.values():
            one.fold()
        return sum(one.times["local"].total for one in self._by_api.values())

    def collect(self, plane: str) -> Iterator[Sample]:
        for key, metrics in sorted(self._by_api.items()):
            metrics.fold()
            labels = (("plane", plane), ("api", _API_NAMES.get(key, "unknown")))
            for name, histogram in metrics.times.items():
                yield Sample(f"{name}_seconds", "histogram", labels, histogram.buckets())
            for name, histogram in metrics.sizes.items():
                yield Sample(f"{name}_bytes", "histogram", labels, histogram.buckets())


@dataclass(slots=True)
class ListenerCounters:
    """What happened to the connections of one listener."""

    accepted: int = 0
    refused: int = 0
    """The peer's address had its share."""
    waited: int = 0
    """The acceptor had to wait for a connection to end."""
    evicted: int = 0
    """Closed for the sake of a connection between brokers, or of a lowered limit."""
    idle: int = 0
    broken_frames: int = 0
    failed_handshakes: int = 0
    mutes: int = 0
    """Reading stopped since bytes came while a request was at work."""
    memory_mutes: int = 0
    """Reading stopped since requests held all the memory that they may."""
    throttles: int = 0

    def collect(self, listener: str) -> Iterator[Sample]:
        for one in fields(self):
            name = f"connections_{one.name}_total"
            yield Sample(name, "counter", (("listener", listener),), getattr(self, one.name))


class IdleMeter:
    """The share of time in which workers were idle, between one look and the next."""

    def __init__(self, now: float) -> None:
        self._looked_at = now
        self._busy_then = 0.0

    def ratio(self, now: float, busy_seconds: float, workers: int) -> float:
        elapsed = (now - self._looked_at) * workers
        busy = busy_seconds - self._busy_then
        self._looked_at, self._busy_then = now, busy_seconds
        return max(0.0, 1.0 - busy / elapsed) if elapsed > 0 else 1.0
