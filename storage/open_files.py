"""Keeps the number of descriptors that logs hold open within a limit.

Owns the choice of whom to close. Every open log file and every open index counts as one holder
(one that is searched and written has two descriptors: its mapping keeps one). Five thousand
partitions would hold fifteen thousand; those that were not used lately are closed instead and
open again when they are next needed.
"""

from threading import Lock
from typing import Protocol


class Holder(Protocol):
    """Something that has one descriptor open and can do without it."""

    recently_used: bool

    def release(self) -> None:
        """Close the descriptor; it is opened again on the next use."""


class OpenFiles:
    """Second-chance eviction: a holder used since the last look is spared once."""

    def __init__(self, limit: int) -> None:
        self._limit = max(limit, 1)
        self._holders: dict[Holder, None] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._holders)

    def opened(self, holder: Holder) -> None:
        """Take note of a holder that has just opened its descriptor, and make room if need be."""
        with self._lock:
            self._holders[holder] = None
            victims = self._choose_victims(holder) if len(self._holders) > self._limit else ()
        for victim in victims:
            victim.release()

    def closed(self, holder: Holder) -> None:
        with self._lock:
            self._holders.pop(holder, None)

    def _choose_victims(self, newest: Holder) -> list[Holder]:
        victims: list[Holder] = []
        for holder in list(self._holders):
            if len(self._holders) <= self._limit:
                break
            if holder is newest:
                continue
            del self._holders[holder]
            if holder.recently_used:
                holder.recently_used = False
                self._holders[holder] = None
            else:
                victims.append(holder)
        return victims
