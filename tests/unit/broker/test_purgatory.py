"""Operations that wait: each is done once, leaves no trace, and costs nobody else anything."""

import pytest

from broker.purgatory import DelayedOperation, Parked, Purgatory
from broker.timing_wheel import TimingWheel
from tests.support.manual_loop import ManualLoop


class Countdown(DelayedOperation[str]):
    """Complete after some number of checks."""

    def __init__(self, checks: int) -> None:
        self.checks = checks

    def try_result(self) -> str | None:
        self.checks -= 1
        return "complete" if self.checks <= 0 else None

    def expired_result(self) -> str:
        return "expired"


class Failing(DelayedOperation[str]):
    def try_result(self) -> str | None:
        raise ValueError("cannot tell")

    def expired_result(self) -> str:
        raise ValueError("cannot expire")


@pytest.fixture
def loop() -> ManualLoop:
    return ManualLoop()


@pytest.fixture
def purgatory(loop: ManualLoop) -> Purgatory[str]:
    return Purgatory(TimingWheel(loop.time, loop.call_later))


def collect(parked: Parked[str]) -> list[str]:
    results: list[str] = []
    parked.when_done(lambda done: results.append(done.result()))
    return results


def test_completes_in_the_call_that_made_it_possible(purgatory: Purgatory[str]) -> None:
    results = collect(purgatory.park(Countdown(2), ["a", "b"], 60))
    purgatory.check("a")
    assert results == []
    purgatory.check("b")
    assert results == ["complete"]
    assert len(purgatory) == 0


def test_is_done_once_and_leaves_every_key(loop: ManualLoop, purgatory: Purgatory[str]) -> None:
    results = collect(purgatory.park(Countdown(1), ["a", "b", "a"], 0.01))
    purgatory.check("a")
    purgatory.check("b")
    loop.advance(0.05)
    assert results == ["complete"]
    assert purgatory._watched == {}
    assert loop.armed == []


def test_expires_when_its_time_is_up(loop: ManualLoop, purgatory: Purgatory[str]) -> None:
    results = collect(purgatory.park(Countdown(99), ["a"], 0.5))
    loop.advance(0.499)
    assert results == []
    loop.advance(0.004)
    assert results == ["expired"]
    assert len(purgatory) == 0
    assert purgatory._watched == {}


def test_cancelled_operation_is_forgotten_and_never_calls_back(
    loop: ManualLoop, purgatory: Purgatory[str]
) -> None:
    parked = purgatory.park(Countdown(1), ["a"], 0.01)
    results = collect(parked)
    parked.cancel()
    purgatory.check("a")
    loop.advance(0.05)
    assert results == []
    assert len(purgatory) == 0


def test_failure_reaches_whoever_asks_for_the_result(purgatory: Purgatory[str]) -> None:
    failing = purgatory.park(Failing(), ["a"], 60)
    healthy = collect(purgatory.park(Countdown(1), ["a"], 60))
    failing.when_done(lambda _parked: None)
    purgatory.check("a")
    with pytest.raises(ValueError, match="cannot tell"):
        failing.result()
    assert healthy == ["complete"]


def test_callback_set_after_completion_is_called_at_once(purgatory: Purgatory[str]) -> None:
    parked = purgatory.park(Countdown(1), ["a"], 60)
    purgatory.check("a")
    assert collect(parked) == ["complete"]


def test_hundred_thousand_that_wait_are_woken_one_key_at_a_time(
    loop: ManualLoop, purgatory: Purgatory[str]
) -> None:
    for number in range(100_000):
        purgatory.park(Countdown(1), [number], 300)
    loop.advance(250)
    assert loop.wakeups == 0
    checked = collect(purgatory.park(Countdown(1), ["one"], 300))
    purgatory.check("one")
    assert checked == ["complete"]
    assert len(purgatory) == 100_000
    loop.advance(60)
    assert len(purgatory) == 0
    assert loop.armed == []
