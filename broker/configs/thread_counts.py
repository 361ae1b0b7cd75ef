"""Numbers of workers that change while the broker runs.

As in Kafka a single change may at most double a number or halve it.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from broker.settings import Settings, SettingsError

_NAMES: Final = (
    "num.io.threads",
    "num.network.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
)


class ThreadCounts:
    """Workers by the setting that says how many there are; not every kind is there to resize."""

    def __init__(self, resize: Mapping[str, Callable[[int], Awaitable[None] | None]]) -> None:
        self._resize = resize

    def concerns(self, name: str) -> bool:
        return name in _NAMES

    def check(self, now: Settings, wanted: Settings) -> None:
        for name in _NAMES:
            check_count(name, now[name], wanted[name])

    async def apply(self, before: Settings, now: Settings) -> None:
        for name, resize in self._resize.items():
            if now[name] != before[name]:
                resized = resize(now[name])
                if inspect.isawaitable(resized):
                    await resized


def check_count(name: str, now: int, wanted: int) -> None:
    """Refuse a step that is too long. Raises SettingsError."""
    if wanted == now:
        return
    if wanted < 1:
        raise SettingsError(name, str(wanted), "must be at least 1")
    if wanted < now // 2:
        raise SettingsError(name, str(wanted), f"must be at least half the current value {now}")
    if wanted > now * 2:
        raise SettingsError(name, str(wanted), f"must be at most double the current value {now}")
