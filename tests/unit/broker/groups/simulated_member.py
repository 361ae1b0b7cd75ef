"""A member as clients implement it, one step at a time: it joins, syncs, works, and starts over."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from broker.groups.results import JoinResult, SyncResult
from network.protocol import ErrorCode
from tests.support.groups import TestCoordinator

PARTITIONS = tuple(("t", number) for number in range(6))
MUST_START_OVER = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)


class Observer(Protocol):
    """Hears what members do and are told."""

    def asks_to_join(self, answers: list[JoinResult]) -> None: ...

    def assigns(self, generation: int, assignment: Mapping[str, bytes]) -> None: ...

    def is_given(
        self, generation: int, member_id: str, instance: str | None, partitions: tuple[int, ...]
    ) -> None: ...


@dataclass(eq=False)
class SimulatedMember:
    """What a client knows of its group."""

    groups: TestCoordinator
    observer: Observer
    instance: str | None
    needs_known_id: bool
    preference: tuple[str, ...]
    member_id: str = ""
    generation: int = -1
    owned: tuple[int, ...] = ()
    positions: dict[int, int] = field(default_factory=dict)
    is_dead: bool = False
    # It sends heartbeats and does nothing else.
    is_busy: bool = False
    joining: list[JoinResult] | None = None
    syncing: list[SyncResult] | None = None

    def step(self) -> None:
        """Do whatever comes next: ask, or take an answer that has come."""
        if self.is_dead:
            return
        if self.is_busy:
            self._heartbeat()
        elif self.joining is not None:
            if self.joining:
                self._joined(self.joining[0])
        elif self.syncing is not None:
            if self.syncing:
                self._synced(self.syncing[0])
        elif self.generation < 0:
            self.join()
        else:
            self._settle(self._heartbeat())

    def join(self) -> None:
        self.owned = ()
        self.joining = self.groups.join(
            self.member_id,
            instance=self.instance,
            protocols=dict.fromkeys(self.preference, b""),
            needs_known_id=self.needs_known_id and self.instance is None,
        )
        self.observer.asks_to_join(self.joining)

    def commit(self) -> dict[int, int] | None:
        """Commit one record more of each partition that is owned; what was acknowledged."""
        if not self.owned or self.is_dead or self.joining is not None:
            return None
        wanted = {one: self.positions.get(one, 0) + 1 for one in self.owned}
        (answer,) = self.groups.commit(
            {("t", one): offset for one, offset in wanted.items()},
            member_id=self.member_id,
            generation=self.generation,
            instance=self.instance,
        )
        (error,) = set(answer.values())
        self._settle(error)
        if error != ErrorCode.NONE:
            return None
        self.positions |= wanted
        return wanted

    def leave(self) -> None:
        self.groups.leave((self.member_id, self.instance))
        self.is_dead = True

    def _heartbeat(self) -> ErrorCode:
        return self.groups.heartbeat(self.member_id, self.generation, instance=self.instance)

    def _joined(self, result: JoinResult) -> None:
        self.joining = None
        if result.error == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = result.member_id
            return
        if result.error != ErrorCode.NONE:
            self._settle(result.error)
            return
        self.member_id, self.generation = result.member_id, result.generation
        assignment = {}
        if result.leader_id == self.member_id:
            ids = sorted(one.member_id for one in result.members)
            for number, member_id in enumerate(ids):
                assignment[member_id] = bytes(range(number, len(PARTITIONS), len(ids)))
        self.syncing = self.groups.sync(
            self.member_id, self.generation, assignment, instance=self.instance
        )
        is_refused = any(answer.error != ErrorCode.NONE for answer in self.syncing)
        if assignment and not is_refused:
            self.observer.assigns(self.generation, assignment)

    def _synced(self, result: SyncResult) -> None:
        self.syncing = None
        if result.error != ErrorCode.NONE:
            self._settle(result.error)
            self.generation = -1
            return
        self.owned = tuple(result.assignment)
        self.observer.is_given(self.generation, self.member_id, self.instance, self.owned)
        self.positions = {one: self.groups.committed(("t", one)) or 0 for one in self.owned}

    def _settle(self, error: ErrorCode) -> None:
        """Go on after an error as clients do."""
        if error == ErrorCode.NONE:
            return
        if error == ErrorCode.FENCED_INSTANCE_ID:
            self.is_dead = True
        if error in MUST_START_OVER:
            self.member_id = ""
        self.generation, self.owned = -1, ()
