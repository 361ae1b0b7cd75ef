"""Long work and others on one loop."""

import asyncio

import pytest

from broker.turns import Turns


def run(steps: int) -> list[str]:
    told: list[str] = []

    async def others() -> None:
        told.append("others")

    async def work() -> None:
        turns = Turns()
        waiting = asyncio.create_task(others())
        for _ in range(steps):
            told.append("work")
            await turns.step()
        await waiting

    asyncio.run(work())
    return told


def test_others_get_their_turn_when_ours_has_lasted_long_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("broker.turns._TURN_SECONDS", 0.0)
    assert run(2) == ["work", "others", "work"]


def test_short_work_is_not_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.turns._TURN_SECONDS", 3600.0)
    assert run(2) == ["work", "work", "others"]
