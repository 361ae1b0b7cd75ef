"""Long work on the loop, in turns: between its steps, others get theirs."""

import asyncio
import time
from typing import Final

_TURN_SECONDS: Final = 0.005


class Turns:
    """Asked after each step; gives the loop away when its turn has lasted long enough."""

    def __init__(self) -> None:
        self._ends = time.monotonic() + _TURN_SECONDS

    async def step(self) -> None:
        if time.monotonic() >= self._ends:
            await asyncio.sleep(0)
            self._ends = time.monotonic() + _TURN_SECONDS
