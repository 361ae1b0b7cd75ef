"""What the figures of a request cost: its clock readings, its row, and its share of the folding.

Prints CPU time per request beside that of the clock itself, of which a request reads at least one.
Run: python -m benchmarks.request_metrics
"""

from collections.abc import Callable
from time import perf_counter, process_time
from typing import cast

from network.channel import Channel
from network.metrics import RequestMetrics
from network.request import Request
from network.request_log import is_enabled

BURST = 64
BURSTS = 300
ROUNDS = 20
FRAME = bytearray(160)
NOBODY = cast("Channel", None)


class BareRequest:
    """What a request would be without figures."""

    __slots__ = ("channel", "frame", "on_abandoned")

    def __init__(self, channel: Channel, frame: bytearray) -> None:
        self.channel = channel
        self.frame = frame
        self.on_abandoned: Callable[[], object] | None = None


def without_figures() -> None:
    for _ in range(BURST):
        BareRequest(NOBODY, FRAME)


def with_figures(metrics: RequestMetrics) -> None:
    """What `Channel` does for a burst of pipelined requests."""
    now = perf_counter()
    unsent: list[Request] = []
    for _ in range(BURST):
        request = Request(NOBODY, FRAME, now)
        request.responded_at = now = perf_counter()
        is_enabled()
        request.response_bytes = 60
        unsent.append(request)
    began = perf_counter()
    ended = perf_counter()
    for request in unsent:
        metrics.record(request, began, ended)
    is_enabled()


def clock_alone() -> None:
    for _ in range(BURST):
        perf_counter()


def nanoseconds(work: Callable[[], None]) -> float:
    """CPU time of one request, in the best of several rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = process_time()
        for _ in range(BURSTS):
            work()
        best = min(best, process_time() - started)
    return best / BURSTS / BURST * 1e9


def main() -> None:
    metrics = RequestMetrics()
    bare = nanoseconds(without_figures)
    whole = nanoseconds(lambda: with_figures(metrics))
    clock = nanoseconds(clock_alone)
    cost = whole - bare
    print(f"figures of a request: {cost:.0f} ns, {cost / clock:.1f} times a look at the clock")


if __name__ == "__main__":
    main()
