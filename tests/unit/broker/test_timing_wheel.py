"""Timers fire once, never early, a tick or two late, and cost nothing while they wait."""

import asyncio
import functools
import heapq
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.timing_wheel import TIMERS_PER_TURN, Timer, TimingWheel
from tests.support.manual_loop import ManualLoop

TICK = 0.001
ROUNDING = 1e-6


@pytest.fixture
def loop() -> ManualLoop:
    return ManualLoop()


@pytest.fixture
def wheel(loop: ManualLoop) -> TimingWheel:
    return TimingWheel(loop.time, loop.call_later)


def nothing() -> None:
    pass


DELAYS = [0, 0.0004, 0.001, 0.255, 0.256, 0.257, 1, 30, 65.536, 600, 86_400, 25 * 86_400]


@pytest.mark.parametrize("delay", DELAYS)
def test_fires_once_at_its_time(loop: ManualLoop, wheel: TimingWheel, delay: float) -> None:
    fired: list[float] = []
    start = loop.now
    wheel.schedule(delay, lambda: fired.append(loop.now))
    loop.advance(delay - TICK / 10)
    assert fired == []
    loop.advance(3 * TICK)
    loop.advance(86_400)
    assert len(fired) == 1
    assert start + delay - ROUNDING <= fired[0] <= start + delay + 2 * TICK + ROUNDING
    assert len(wheel) == 0


def test_is_not_called_in_the_turn_that_scheduled_it(loop: ManualLoop, wheel: TimingWheel) -> None:
    fired: list[float] = []
    wheel.schedule(-1, lambda: fired.append(loop.now))
    assert fired == []
    loop.advance(2 * TICK)
    assert len(fired) == 1


def test_waits_longer_than_anybody_lives(loop: ManualLoop, wheel: TimingWheel) -> None:
    timer = wheel.schedule(float("inf"), nothing)
    loop.advance(365 * 86_400)
    assert timer.pending


def test_cancelled_timer_never_fires(loop: ManualLoop, wheel: TimingWheel) -> None:
    fired: list[str] = []
    timer = wheel.schedule(1, lambda: fired.append("cancelled"))
    wheel.schedule(1, lambda: fired.append("kept"))
    timer.cancel()
    timer.cancel()
    assert not timer.pending
    assert len(wheel) == 1
    loop.advance(2)
    assert fired == ["kept"]


def test_timer_cancelled_by_one_that_fires_in_the_same_turn_never_fires(
    loop: ManualLoop, wheel: TimingWheel
) -> None:
    fired: list[str] = []

    def fire_first() -> None:
        fired.append("first")
        second.cancel()

    first = wheel.schedule(1, fire_first)
    second = wheel.schedule(1, lambda: fired.append("second"))
    loop.advance(2)
    assert fired == ["first"]
    assert not first.pending
    assert len(wheel) == 0


def test_rescheduled_timer_fires_at_its_new_time_only(loop: ManualLoop, wheel: TimingWheel) -> None:
    fired: list[float] = []
    start = loop.now
    later = wheel.schedule(1, lambda: fired.append(loop.now))
    sooner = wheel.schedule(600, lambda: fired.append(loop.now))
    later.reschedule(700)
    sooner.reschedule(5)
    loop.advance(1000)
    assert fired == pytest.approx([start + 5, start + 700], abs=2 * TICK)


def test_timer_that_has_fired_can_be_scheduled_again(loop: ManualLoop, wheel: TimingWheel) -> None:
    fired: list[float] = []
    timer = wheel.schedule(1, lambda: fired.append(loop.now))
    loop.advance(2)
    timer.reschedule(1)
    loop.advance(2)
    assert len(fired) == 2


def test_periodic_timer_may_reschedule_itself(loop: ManualLoop, wheel: TimingWheel) -> None:
    fired: list[float] = []

    def beat() -> None:
        fired.append(loop.now)
        timer.reschedule(1)

    timer = wheel.schedule(1, beat)
    loop.advance(10.5)
    assert len(fired) == 10


def test_failing_callback_costs_nobody_else(
    loop: ManualLoop, wheel: TimingWheel, caplog: pytest.LogCaptureFixture
) -> None:
    fired: list[str] = []
    wheel.schedule(1, lambda: [][0])
    wheel.schedule(1, lambda: fired.append("next"))
    loop.advance(2)
    assert fired == ["next"]
    assert "A timer failed" in caplog.text


def test_many_that_are_due_at_once_share_the_loop(loop: ManualLoop, wheel: TimingWheel) -> None:
    fired: list[int] = []
    for number in range(10 * TIMERS_PER_TURN):
        wheel.schedule(1, functools.partial(fired.append, number))
    loop.stall(2)
    loop.advance(0)
    assert fired == list(range(10 * TIMERS_PER_TURN))
    assert loop.wakeups == 10


def test_hundred_thousand_that_wait_wake_nobody(loop: ManualLoop, wheel: TimingWheel) -> None:
    """The loop has one timer, for the first bucket; filing closer takes turns, ticking none."""
    for number in range(100_000):
        wheel.schedule(3600 + number % 1000, nothing)
    assert len(loop.armed) == 1
    loop.advance(3000)
    assert loop.wakeups == 0
    assert len(wheel) == 100_000
    loop.advance(2000)
    assert len(wheel) == 0
    assert loop.armed == []
    filed_per_timer = 3
    assert loop.wakeups < 100_000 * filed_per_timer / TIMERS_PER_TURN + 1000 * filed_per_timer


def test_heartbeats_leave_their_timers_where_they_are(loop: ManualLoop, wheel: TimingWheel) -> None:
    """5,000 members that beat every 3 s of 10: one trip through the loop per bucket, not per
    heartbeat."""
    members = [wheel.schedule(10, nothing) for _ in range(5000)]
    for _ in range(100):
        loop.advance(3)
        for one in members:
            one.reschedule(10)
    assert len(wheel) == 5000
    assert loop.wakeups < 100 * 5000 / TIMERS_PER_TURN * 2
    loop.advance(11)
    assert len(wheel) == 0


def test_empty_wheel_leaves_the_loop_alone(loop: ManualLoop, wheel: TimingWheel) -> None:
    wheel.schedule(1, nothing).cancel()
    loop.advance(5)
    assert loop.armed == []
    assert loop.wakeups <= 1


def test_sleeps_on_a_real_loop_while_many_wait() -> None:
    """No turn of the loop is taken for 100,000 timers that are not due."""

    async def scenario() -> None:
        wheel = TimingWheel()
        for _ in range(100_000):
            wheel.schedule(3600, nothing)
        running = asyncio.get_running_loop()
        selects = count_calls(running._selector)  # type: ignore[attr-defined]
        fired = asyncio.Event()
        wheel.schedule(0.3, fired.set)
        await asyncio.wait_for(fired.wait(), 30)
        assert selects() <= 10

    asyncio.run(scenario())


def count_calls(selector: object) -> Callable[[], int]:
    calls = 0
    select = selector.select  # type: ignore[attr-defined]

    def counting(timeout: float | None = None) -> object:
        nonlocal calls
        calls += 1
        return select(timeout)

    selector.select = counting  # type: ignore[attr-defined]
    return lambda: calls


class HeapModel:
    """The same timers on a plain heap."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, int]] = []
        self._versions: dict[int, int] = {}

    def schedule(self, number: int, time: float) -> None:
        version = self._versions.get(number, 0) + 1
        self._versions[number] = version
        heapq.heappush(self._heap, (time, number, version))

    def cancel(self, number: int) -> None:
        self._versions[number] = self._versions.get(number, 0) + 1

    def due(self, time: float) -> set[int]:
        fired = set()
        while self._heap and self._heap[0][0] <= time:
            _, number, version = heapq.heappop(self._heap)
            if self._versions[number] == version:
                fired.add(number)
                self._versions[number] += 1
        return fired

    def __len__(self) -> int:
        return sum(self._versions[number] == version for _, number, version in self._heap)


delays = st.one_of(st.integers(1, 600), st.integers(1, 100_000), st.integers(1, 30_000_000))
steps = st.one_of(
    st.tuples(st.just("schedule"), st.integers(0, 20), delays),
    st.tuples(st.just("cancel"), st.integers(0, 20), st.just(0)),
    st.tuples(st.sampled_from(["advance", "stall"]), st.just(0), delays),
)


class Twins:
    """A wheel and its model, in step. Things happen within ticks, where rounding cannot matter,
    so that a timer is due at the tick that follows its time."""

    def __init__(self) -> None:
        self.milliseconds = 0
        self.loop = ManualLoop()
        self.loop.now = self.now()
        self.wheel = TimingWheel(self.loop.time, self.loop.call_later)
        self.wheel._origin = 0.0
        self.model = HeapModel()
        self.timers: dict[int, Timer] = {}
        self.fired: list[int] = []

    def now(self) -> float:
        return (self.milliseconds + 0.25) / 1000

    def schedule(self, number: int, delay: int) -> None:
        self.model.schedule(number, self.milliseconds + delay + 1)
        if number in self.timers:
            self.timers[number].reschedule(delay / 1000)
        else:
            fire = functools.partial(self.fired.append, number)
            self.timers[number] = self.wheel.schedule(delay / 1000, fire)

    def cancel(self, number: int, _delay: int) -> None:
        if number in self.timers:
            self.model.cancel(number)
            self.timers[number].cancel()

    def stall(self, _number: int, duration: int) -> None:
        self.milliseconds += duration
        self.loop.now = self.now()

    def advance(self, _number: int, duration: int) -> None:
        self.milliseconds += duration
        self.loop.advance(self.now() - self.loop.now)
        assert sorted(self.fired) == sorted(self.model.due(self.milliseconds))
        self.fired.clear()


@given(st.lists(steps, max_size=80))
def test_fires_what_a_heap_would_fire(script: list[tuple[str, int, int]]) -> None:
    twins = Twins()
    for step, number, amount in script:
        getattr(twins, step)(number, amount)
        assert len(twins.wheel) == len(twins.model)
    twins.advance(0, 40_000_000)
    assert len(twins.wheel) == 0
    assert twins.loop.armed == []
