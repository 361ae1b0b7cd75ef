"""Requests that wait for a worker, up to a limit, and who waits to add more."""

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from network.request import Request


class Backlog:
    """First in, first out. A full one refuses, and calls back when there is room again."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._requests: deque[Request] = deque()
        self._on_room: deque[Callable[[], None]] = deque()
        self._room_announced = False

    def __len__(self) -> int:
        return len(self._requests)

    def add(self, request: "Request") -> bool:
        if len(self._requests) >= self._capacity:
            return False
        self._requests.append(request)
        return True

    def take(self) -> "Request":
        """The oldest; there must be one."""
        request = self._requests.popleft()
        request.dequeued_at = perf_counter()
        if self._on_room and not self._room_announced:
            self._room_announced = True
            asyncio.get_running_loop().call_soon(self._announce_room)
        return request

    def when_room(self, callback: Callable[[], None]) -> None:
        """Call back once, in turn, when a full one has room again."""
        self._on_room.append(callback)

    def clear(self) -> None:
        self._requests.clear()
        self._on_room.clear()

    def _announce_room(self) -> None:
        self._room_announced = False
        while self._on_room and len(self._requests) < self._capacity:
            self._on_room.popleft()()
