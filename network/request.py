"""A request on its way to a handler, and the way back for its response.

It carries the clock readings that become metrics and lines of the request log.
"""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from network.send_queue import Part

if TYPE_CHECKING:
    from network.channel import Channel

NOT_YET = 0.0
_RELEASED = bytearray()


class Request:
    """A complete frame."""

    __slots__ = (
        "api_key",
        "channel",
        "dequeued_at",
        "description",
        "frame",
        "frame_bytes",
        "local_done_at",
        "on_abandoned",
        "received_at",
        "responded_at",
        "response_bytes",
        "throttle_seconds",
    )

    def __init__(self, channel: "Channel", frame: bytearray, received_at: float) -> None:
        self.channel = channel
        self.frame = frame
        self.frame_bytes = len(frame)
        self.api_key = frame[0] << 8 | frame[1] if len(frame) > 1 else -1
        self.received_at = received_at
        self.dequeued_at = received_at
        self.local_done_at = NOT_YET
        self.responded_at = NOT_YET
        self.response_bytes = 0
        self.throttle_seconds = 0.0
        self.description: str | None = None
        self.on_abandoned: Callable[[], object] | None = None

    def respond(self, parts: Sequence[Part], throttle_ms: int = 0) -> None:
        """Send the response; an empty one (acks=0) only lets the next request in. The connection
        stays muted until the response is sent and `throttle_ms` have passed."""
        self.channel.complete(self, parts, throttle_ms)

    def close_connection(self) -> None:
        self.channel.close()

    def parked(self) -> None:
        """The handler is done and somebody answers later: the frame is no longer needed."""
        if self.responded_at == NOT_YET:
            self.local_done_at = perf_counter()
            self.channel.release(self)

    def drop_frame(self) -> int:
        """Forget the frame; how much memory that freed."""
        freed = len(self.frame)
        self.frame = _RELEASED
        return freed
