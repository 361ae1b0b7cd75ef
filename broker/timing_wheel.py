"""Timeouts by the hundred thousand: a hierarchical timing wheel on one timer of the loop.

Time is counted in ticks of a millisecond. The wheel of level 0 has a bucket for each of the next
256 ticks, a bucket of level 1 spans 256 ticks, and so on. A timer lies in the lowest level whose
current turn it falls into; when the time of its bucket has come, it fires or is filed closer:

    tick of a timer:  | level 4 | level 3 | level 2 | level 1 | level 0 |   8 bits each
    its level:        the highest of these digits in which it differs from the present tick

Adding, cancelling, postponing and firing are O(1), and nothing ticks: the loop is only woken for
the next bucket that holds something, and never for an empty wheel. A timer never fires early; it
fires a tick or two late.

The wheel knows nothing of what it is that waits.
"""

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeAlias

logger = logging.getLogger(__name__)

TICKS_PER_SECOND = 1000
DIGIT_BITS = 8
SLOTS = 1 << DIGIT_BITS
SLOT_MASK = SLOTS - 1
LEVELS = 5
LONGEST_DELAY_SECONDS = 10 * 365 * 86400
NEVER = 1 << (DIGIT_BITS * LEVELS)
TIMERS_PER_TURN = 256

# Where a timer is, if not in the bucket of that number.
IDLE = -1
DUE = -2

Callback: TypeAlias = Callable[[], None]


class Armed(Protocol):
    """A timer of the loop."""

    def cancel(self) -> None: ...


class Timer:
    """A callback for later; it can be called off, and put off as often as one likes."""

    __slots__ = ("bucket", "callback", "tick", "wheel")

    def __init__(self, wheel: "TimingWheel", callback: Callback) -> None:
        self.wheel = wheel
        self.callback = callback
        self.tick = 0
        self.bucket = IDLE

    @property
    def pending(self) -> bool:
        return self.bucket != IDLE

    def cancel(self) -> None:
        """Do not fire; nothing happens if it has fired or was cancelled."""
        if self.bucket != IDLE:
            self.wheel.remove(self)

    def reschedule(self, delay_seconds: float) -> None:
        """Fire after this delay from now instead, also if it has fired or was cancelled.

        Putting a timer off leaves it where it is: its bucket will file it anew. So a heartbeat
        costs no more than a look at the clock.
        """
        wheel = self.wheel
        tick = wheel.tick_after(delay_seconds)
        if self.bucket == DUE or (self.bucket != IDLE and tick >= self.tick):
            self.tick = tick
        else:
            if self.bucket != IDLE:
                wheel.remove(self)
            wheel.add(self, tick)


def _call_later(delay_seconds: float, callback: Callback) -> Armed:
    return asyncio.get_running_loop().call_later(delay_seconds, callback)


class TimingWheel:
    """All timeouts of a broker."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        call_later: Callable[[float, Callback], Armed] = _call_later,
    ) -> None:
        self._clock = clock
        self._call_later = call_later
        self._origin = clock()
        # Every filed timer lies ahead of this tick, and no bucket that holds one began before it.
        self._elapsed = 0
        self._count = 0
        self._buckets: list[dict[Timer, None]] = [{} for _ in range(LEVELS * SLOTS)]
        # One bit per bucket that holds something: the lowest is the next.
        self._occupied = [0] * LEVELS
        self._due: deque[Timer] = deque()
        self._armed: Armed | None = None
        self._armed_tick = NEVER

    def __len__(self) -> int:
        """How many timers wait."""
        return self._count

    def schedule(self, delay_seconds: float, callback: Callback) -> Timer:
        """Call back once, after this delay, in a turn of the loop of its own."""
        timer = Timer(self, callback)
        self.add(timer, self.tick_after(delay_seconds))
        return timer

    def tick_after(self, delay_seconds: float) -> int:
        """The first tick at which the delay is over."""
        if delay_seconds > LONGEST_DELAY_SECONDS:
            delay_seconds = LONGEST_DELAY_SECONDS
        elapsed = self._clock() - self._origin
        present = int(elapsed * TICKS_PER_SECOND)
        if present < self._armed_tick:
            self._elapsed = present
        tick = math.ceil((elapsed + delay_seconds) * TICKS_PER_SECOND)
        return tick if tick > self._elapsed else self._elapsed + 1

    def add(self, timer: Timer, tick: int) -> None:
        self._count += 1
        begins = self._file(timer, tick)
        if begins < self._armed_tick:
            self._arm(begins)

    def remove(self, timer: Timer) -> None:
        self._count -= 1
        number = timer.bucket
        timer.bucket = IDLE
        if number >= 0:
            bucket = self._buckets[number]
            del bucket[timer]
            if not bucket:
                self._occupied[number >> DIGIT_BITS] ^= 1 << (number & SLOT_MASK)

    def _file(self, timer: Timer, tick: int) -> int:
        """Put a timer into its bucket, and say when that begins."""
        level = ((tick ^ self._elapsed).bit_length() - 1) // DIGIT_BITS
        shift = level * DIGIT_BITS
        digits = tick >> shift
        slot = digits & SLOT_MASK
        number = (level << DIGIT_BITS) | slot
        bucket = self._buckets[number]
        if not bucket:
            self._occupied[level] |= 1 << slot
        bucket[timer] = None
        timer.tick = tick
        timer.bucket = number
        return digits << shift

    def _next_bucket(self) -> tuple[int, int]:
        """The tick at which the next bucket that holds something begins, and its number."""
        for level, occupied in enumerate(self._occupied):
            if occupied:
                slot = (occupied & -occupied).bit_length() - 1
                shift = level * DIGIT_BITS
                turn = self._elapsed >> shift >> DIGIT_BITS
                return ((turn << DIGIT_BITS) | slot) << shift, (level << DIGIT_BITS) | slot
        return NEVER, IDLE

    def _arm(self, tick: int) -> None:
        if self._armed is not None:
            self._armed.cancel()
        self._armed_tick = tick
        delay = (tick - self._present_tick()) / TICKS_PER_SECOND
        self._armed = self._call_later(max(0.0, delay), self._wake)

    def _wake(self) -> None:
        present = self._present_tick()
        # What is added meanwhile must not arm anything: that comes at the end.
        self._armed_tick = 0
        self._armed = None
        self._collect_due(present)
        self._run_due(present)
        self._armed_tick = NEVER
        tick = present if self._due else self._next_bucket()[0]
        if tick < NEVER:
            self._arm(tick)

    def _collect_due(self, present: int) -> None:
        while True:
            begins, number = self._next_bucket()
            if begins > present:
                break
            bucket = self._buckets[number]
            self._elapsed = begins
            self._occupied[number >> DIGIT_BITS] ^= 1 << (number & SLOT_MASK)
            self._buckets[number] = {}
            self._due.extend(bucket)
            for timer in bucket:
                timer.bucket = DUE
        self._elapsed = max(self._elapsed, present)

    def _run_due(self, present: int) -> None:
        """Fire what is due and file the rest closer; so many in one turn, so that others live."""
        due = self._due
        for _ in range(min(len(due), TIMERS_PER_TURN)):
            timer = due.popleft()
            if timer.bucket != DUE:
                continue
            if timer.tick > present:
                self._file(timer, timer.tick)
                continue
            timer.bucket = IDLE
            self._count -= 1
            try:
                timer.callback()
            except Exception:
                logger.exception("A timer failed")

    def _present_tick(self) -> int:
        return int((self._clock() - self._origin) * TICKS_PER_SECOND)
