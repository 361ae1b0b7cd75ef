"""Operations that wait: each is done once, leaves no trace, and costs nobody else anything."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from broker.purgatory import DelayedOperation, Parked, Purgatory


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


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(test(), 30)

    asyncio.run(bounded())


def collect(parked: Parked[str]) -> list[str]:
    results: list[str] = []
    parked.when_done(lambda done: results.append(done.result()))
    return results


def test_completes_in_the_call_that_made_it_possible() -> None:
    async def scenario() -> None:
        purgatory: Purgatory[str] = Purgatory()
        results = collect(purgatory.park(Countdown(2), ["a", "b"], 60))
        purgatory.check("a")
        assert results == []
        purgatory.check("b")
        assert results == ["complete"]
        assert len(purgatory) == 0

    run(scenario)


def test_is_done_once_and_leaves_every_key() -> None:
    async def scenario() -> None:
        purgatory: Purgatory[str] = Purgatory()
        results = collect(purgatory.park(Countdown(1), ["a", "b", "a"], 0.01))
        purgatory.check("a")
        purgatory.check("b")
        await asyncio.sleep(0.05)
        assert results == ["complete"]
        assert purgatory._watched == {}

    run(scenario)


def test_expires_when_its_time_is_up() -> None:
    async def scenario() -> None:
        purgatory: Purgatory[str] = Purgatory()
        done = asyncio.Event()
        parked = purgatory.park(Countdown(99), ["a"], 0.01)
        parked.when_done(lambda _parked: done.set())
        await done.wait()
        assert parked.result() == "expired"
        assert len(purgatory) == 0

    run(scenario)


def test_cancelled_operation_is_forgotten_and_never_calls_back() -> None:
    async def scenario() -> None:
        purgatory: Purgatory[str] = Purgatory()
        parked = purgatory.park(Countdown(1), ["a"], 0.01)
        results = collect(parked)
        parked.cancel()
        purgatory.check("a")
        await asyncio.sleep(0.05)
        assert results == []
        assert len(purgatory) == 0

    run(scenario)


def test_failure_reaches_whoever_asks_for_the_result() -> None:
    async def scenario() -> None:
        purgatory: Purgatory[str] = Purgatory()
        failing = purgatory.park(Failing(), ["a"], 60)
        healthy = collect(purgatory.park(Countdown(1), ["a"], 60))
        failing.when_done(lambda _parked: None)
        purgatory.check("a")
        with pytest.raises(ValueError, match="cannot tell"):
            failing.result()
        assert healthy == ["complete"]

    run(scenario)


def test_callback_set_after_completion_is_called_at_once() -> None:
    async def scenario() -> None:
        purgatory: Purgatory[str] = Purgatory()
        parked = purgatory.park(Countdown(1), ["a"], 60)
        purgatory.check("a")
        assert collect(parked) == ["complete"]

    run(scenario)
