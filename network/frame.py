"""Cuts a byte stream into size-prefixed frames; does no I/O and knows nothing of what a frame says.

    +--------------+-----------------+
    | size (int32) | payload (size)  |   big-endian, repeated
    +--------------+-----------------+

Small frames are copied out of the receiver's scratch buffer. A frame that is still incomplete
gets a buffer of its own, into which the socket can receive directly, so that the bytes of a large
request are written once. That buffer grows with what has really arrived: a client that announces
100 MB and sends nothing costs one step of growth, not 100 MB.
"""

from collections import deque
from struct import Struct

SIZE_PREFIX = Struct(">i")
GROWTH_STEP = 1 << 20


class InvalidFrameSize(Exception):
    """The four length bytes announce a frame that must not be read."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"frame of {size} bytes announced, allowed are 0 to {limit}")


class FrameReader:
    """Turns received bytes into frames; complete ones wait in `frames`, oldest first."""

    __slots__ = ("_filled", "_max_size", "_partial", "_prefix", "_size", "_tail", "frames")

    def __init__(self, max_size: int) -> None:
        self.frames: deque[bytearray] = deque()
        self._max_size = max_size
        self._prefix = b""
        self._partial: bytearray | None = None
        self._tail: memoryview | None = None
        self._size = 0
        self._filled = 0

    @property
    def buffered_bytes(self) -> int:
        """Bytes held for frames that nobody has taken yet."""
        return sum(map(len, self.frames)) + self._filled + len(self._prefix)

    @property
    def is_mid_frame(self) -> bool:
        """The size of the next frame is known, and part of it is still to come."""
        return self._partial is not None

    @property
    def reserved_bytes(self) -> int:
        """What complete frames hold, and what the one at hand will hold in the end."""
        return sum(map(len, self.frames)) + (self._size if self._partial is not None else 0)

    def clear(self) -> None:
        self.frames.clear()
        self._release_tail()
        self._partial = None
        self._filled = 0
        self._prefix = b""

    def direct_target(self) -> memoryview | None:
        """Where to receive the rest of the frame at hand; None: into a scratch buffer."""
        if self._partial is None:
            return None
        if self._tail is None:
            self._tail = memoryview(self._partial)[self._filled :]
        return self._tail

    def received_directly(self, count: int) -> None:
        """`count` bytes have been received into `direct_target()`."""
        self._release_tail()
        self._filled += count
        self._finish_or_grow()

    def feed(self, data: memoryview) -> None:
        """Take bytes from a scratch buffer, which may be reused as soon as this returns."""
        position = 0
        if self._partial is not None:
            position = self._fill_partial(data)
        elif self._prefix:
            data = memoryview(self._prefix + data)
            self._prefix = b""
        end = len(data)
        frames = self.frames
        while end - position >= SIZE_PREFIX.size:
            (size,) = SIZE_PREFIX.unpack_from(data, position)
            if not 0 <= size <= self._max_size:
                raise InvalidFrameSize(size, self._max_size)
            position += SIZE_PREFIX.size
            if end - position < size:
                self._begin_partial(size, data[position:])
                return
            frames.append(bytearray(data[position : position + size]))
            position += size
        self._prefix += bytes(data[position:])

    def _begin_partial(self, size: int, head: memoryview) -> None:
        self._size = size
        self._filled = len(head)
        self._partial = bytearray(min(size, max(GROWTH_STEP, self._filled)))
        self._partial[: self._filled] = head

    def _fill_partial(self, data: memoryview) -> int:
        position = 0
        while self._partial is not None and position < len(data):
            target = self.direct_target()
            assert target is not None
            count = min(len(target), len(data) - position)
            target[:count] = data[position : position + count]
            position += count
            self.received_directly(count)
        return position

    def _finish_or_grow(self) -> None:
        partial = self._partial
        assert partial is not None
        if self._filled == self._size:
            self.frames.append(partial)
            self._partial = None
            self._filled = 0
        elif self._filled == len(partial):
            grown = min(self._size, max(2 * len(partial), GROWTH_STEP))
            partial.extend(bytes(grown - len(partial)))

    def _release_tail(self) -> None:
        if self._tail is not None:
            self._tail.release()
            self._tail = None
