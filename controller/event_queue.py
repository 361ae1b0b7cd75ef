"""The one queue of the controller: events in order, none of them twice while it waits."""

import asyncio
from collections import deque

from controller.events import Event


class EventQueue:
    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._waiting: set[Event] = set()
        self._filled = asyncio.Event()

    def put(self, event: Event) -> None:
        """Add an event; an equal one that still waits will do for both."""
        if event not in self._waiting:
            self._waiting.add(event)
            self._events.append(event)
            self._filled.set()

    def clear(self) -> list[Event]:
        """Drop all that waits, and tell what it was."""
        dropped = list(self._events)
        self._events.clear()
        self._waiting.clear()
        self._filled.clear()
        return dropped

    async def next(self) -> Event:
        await self._filled.wait()
        event = self._events.popleft()
        self._waiting.remove(event)
        if not self._events:
            self._filled.clear()
        return event
