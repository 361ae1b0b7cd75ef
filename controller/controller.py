"""The controller of a broker: takes part in the election, and reacts to events while it is active.

One queue, one task: watches, sessions and answers only enqueue, so that every change is handled by
itself. What the active controller does is term.py's.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, TypeVar

from controller import events, znodes
from controller.channels import Send
from controller.cluster import BrokerInfo, ReplicaAssignment, TopicPartition
from controller.context import ControllerContext
from controller.elections import ElectionResults, Strategy
from controller.event_queue import EventQueue
from controller.fenced_store import FencedStore
from controller.metadata_store import (
    BrokerRegisteredError,
    ControllerMovedError,
    MetadataStore,
)
from controller.reassignment import Verdicts
from controller.term import ControllerOptions, Term
from controller.zookeeper import NoNodeError, SessionEvent, SessionExpiredError, ZooKeeperError

logger = logging.getLogger(__name__)

_NOBODY: Final = -1
_REGISTER_RETRY_SECONDS: Final = 5.0
_REUNION_SECONDS: Final = 2.0
_REUNION_CHECK_SECONDS: Final = 0.05

T = TypeVar("T")

_TERM_HANDLERS: Final[dict[type[events.Event], Callable[[Term, Any], Awaitable[None]]]] = {
    events.BrokersChanged: Term.on_brokers_changed,
    events.BrokerModified: Term.on_broker_modified,
    events.TopicsChanged: Term.on_topics_changed,
    events.PartitionsModified: Term.on_partitions_modified,
    events.LeaderAndIsrAnswered: Term.on_leader_and_isr_answered,
    events.UpdateMetadataAnswered: Term.on_update_metadata_answered,
    events.StopReplicaAnswered: lambda term, event: term.deletion.on_stop_replica_answered(event),
    events.TopicDeletionsChanged: lambda term, event: term.deletion.on_wanted(event),
    events.IsrChangesNotified: lambda term, event: term.notifications.on_isr_changes(event),
    events.LogDirEventsNotified: lambda term, event: term.notifications.on_log_dir_events(event),
    events.PreferredElectionRequested: lambda term, event: term.elections.on_requested(event),
    events.ReassignmentRequestedByZnode: lambda term, event: term.reassignments.on_znode(event),
    events.MovingPartitionChanged: lambda term, event: term.reassignments.on_in_sync_changed(event),
    events.UncleanElectionSet: Term.on_unclean_election_set,
    events.UncleanElectionEnabledIn: Term.on_unclean_election_enabled_in,
    events.LeaderBalanceDue: Term.on_balance_due,
    events.ControlledShutdownRequested: Term.on_controlled_shutdown,
    events.ElectionRequested: Term.on_election_requested,
    events.ReassignmentRequested: Term.on_reassignment_requested,
    events.ReassignmentsAsked: Term.on_reassignments_asked,
}


class Controller:
    """A broker's part in steering the cluster: as a candidate, or as the one that steers.

    ``send`` carries a request to a broker and returns its response. ``on_registered`` is told when
    the broker had to register anew, after its session had expired, and has another epoch.
    ``known_brokers`` says which brokers were there when this one last heard of them.
    """

    def __init__(
        self,
        store: MetadataStore,
        broker: BrokerInfo,
        send: Send,
        *,
        options: ControllerOptions | None = None,
        on_registered: Callable[[BrokerInfo], None] | None = None,
        known_brokers: Callable[[], Collection[int]] = tuple,
    ) -> None:
        self._store = store
        self._broker = broker
        self._send = send
        self._options = options or ControllerOptions()
        self._on_registered = on_registered
        self._known_brokers = known_brokers
        self._queue = EventQueue()
        self._task: asyncio.Task[None] | None = None
        self._term: Term | None = None
        self.controller_id = _NOBODY

    @property
    def is_active(self) -> bool:
        return self._term is not None

    @property
    def epoch(self) -> int:
        """The epoch of this broker's term of office; 0 while it has none."""
        return 0 if self._term is None else self._term.context.epoch

    @property
    def context(self) -> ControllerContext | None:
        """The active controller's picture of the cluster."""
        return None if self._term is None else self._term.context

    async def start(self) -> None:
        """Join the election; returns at once."""
        client = self._store.client
        client.on_session_event(self._session_changed)
        client.watch_node(znodes.CONTROLLER, lambda: self._put(events.ControllerChanged()))
        self._put(events.Startup())
        self._task = asyncio.create_task(self._run(), name="controller")

    async def stop(self) -> None:
        """Leave; the end of the session makes room for the next controller."""
        self._store.client.unwatch(znodes.CONTROLLER)
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        await self._resign()
        for event in self._queue.clear():
            _refuse(event)

    async def controlled_shutdown(self, broker: int, broker_epoch: int) -> set[TopicPartition]:
        """Have a broker's leadership moved away; the answer is what it leads still.

        Raises ControllerMovedError where this broker is not the controller.
        """
        return await self._ask(
            lambda answer: events.ControlledShutdownRequested(broker, broker_epoch, answer)
        )

    async def elect_leaders(
        self, partitions: Iterable[TopicPartition] | None, strategy: Strategy
    ) -> ElectionResults:
        """Have leaders elected, for some partitions or for all; says of each what became of it.

        Raises ControllerMovedError where this broker is not the controller.
        """
        wanted = None if partitions is None else frozenset(partitions)
        return await self._ask(lambda answer: events.ElectionRequested(wanted, strategy, answer))

    async def alter_reassignments(
        self, targets: Mapping[TopicPartition, Sequence[int] | None]
    ) -> Verdicts:
        """Have partitions moved to the given brokers; None ends a move that is under way.

        The answer says of each whether its move has begun. Raises ControllerMovedError where this
        broker is not the controller.
        """
        wanted = {one: None if to is None else tuple(to) for one, to in targets.items()}
        return await self._ask(lambda answer: events.ReassignmentRequested(wanted, answer))

    async def list_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, ReplicaAssignment]:
        """Those of the partitions, or of all, that are being moved, with who comes and who goes.

        Raises ControllerMovedError where this broker is not the controller.
        """
        wanted = None if partitions is None else frozenset(partitions)
        return await self._ask(lambda answer: events.ReassignmentsAsked(wanted, answer))

    async def update_broker(self, info: BrokerInfo) -> None:
        """The broker says something else of itself, from now on and when it registers again."""
        self._broker = info.with_epoch(self._broker.epoch)
        with suppress(NoNodeError):  # while it is not registered; it will be
            await self._store.update_broker(self._broker)

    def set_unclean_election(self, allowed: bool) -> None:
        """Whether topics that do not say so themselves may lose records rather than leaders."""
        self._options = replace(self._options, unclean_election=allowed)
        self._put(events.UncleanElectionSet(allowed))

    def enable_unclean_election_in(self, topic: str) -> None:
        """A topic's settings allow it from now on: find leaders for what has none."""
        self._put(events.UncleanElectionEnabledIn(topic))

    async def _ask(self, question: Callable[[asyncio.Future[T]], events.Asking]) -> T:
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._put(question(answer))
        return await answer

    def _put(self, event: events.Event) -> None:
        self._queue.put(event)

    def _session_changed(self, event: SessionEvent) -> None:
        if event is SessionEvent.EXPIRED:
            for dropped in self._queue.clear():
                _refuse(dropped)
            self._put(events.SessionExpired())
        elif event is SessionEvent.ESTABLISHED:
            self._put(events.SessionEstablished())

    async def _run(self) -> None:
        while True:
            event = await self._queue.next()
            try:
                await self._handle(event)
            except ControllerMovedError as error:
                logger.info("No longer the controller: %s", error)
                await self._resign()
                self._put(events.ControllerChanged())
            except SessionExpiredError as error:
                logger.info("%s was left unhandled: %s", event, error)
            except ZooKeeperError as error:
                logger.error("%s could not be handled: %s", event, error)
            except Exception:
                logger.exception("%s could not be handled", event)

    async def _handle(self, event: events.Event) -> None:
        match event:
            case events.Startup():
                await self._elect()
            case events.ControllerChanged():
                await self._look_for_controller()
                await self._elect()
            case events.SessionExpired():
                await self._resign()
            case events.SessionEstablished():
                if await self._register_again():
                    await self._wait_for_others()
                    await self._elect()
            case _ if self._term is not None:
                await _TERM_HANDLERS[type(event)](self._term, event)
            case _:
                _refuse(event)

    # -- election ----------------------------------------------------------------------------

    async def _elect(self) -> None:
        """Become the controller if there is none."""
        if self._term is not None:
            return
        await self._look_for_controller()
        if self.controller_id == self._broker.id:
            await self._store.vacate_controller()  # ours, of a term that has ended
            self.controller_id = _NOBODY
        if self.controller_id != _NOBODY:
            return
        try:
            office = await self._store.elect_controller(self._broker.id)
        except ControllerMovedError:
            await self._look_for_controller()
            return
        logger.info(
            "%d successfully elected as the controller, epoch %d", self._broker.id, office.epoch
        )
        fenced = FencedStore(self._store.client, office)
        self._term = Term(
            self._broker.id, self._store, fenced, self._send, self._put, self._options
        )
        self.controller_id = self._broker.id
        try:
            await self._term.begin()
        except (ControllerMovedError, SessionExpiredError):
            raise
        except Exception:
            logger.exception("The new controller failed; another one may be elected")
            await self._resign()
            await fenced.resign()

    async def _look_for_controller(self) -> None:
        """Learn who is the controller (and watch on); resign if it should have been us."""
        await self._store.client.exists(znodes.CONTROLLER)
        found = await self._store.controller_id()
        if found != self._broker.id:
            await self._resign()
        self.controller_id = _NOBODY if found is None else found

    async def _resign(self) -> None:
        term, self._term = self._term, None
        self.controller_id = _NOBODY
        if term is not None:
            logger.info("Resigning as the controller of epoch %d", term.context.epoch)
            await term.end()

    async def _register_again(self) -> bool:
        await self._resign()
        try:
            epoch = await self._store.register_broker(self._broker)
        except BrokerRegisteredError as error:
            logger.error("This broker is not part of the cluster any more: %s", error)
            retry = asyncio.get_running_loop().call_later
            retry(_REGISTER_RETRY_SECONDS, self._put, events.SessionEstablished())
            return False
        self._broker = self._broker.with_epoch(epoch)
        if self._on_registered is not None:
            self._on_registered(self._broker)
        return True

    async def _wait_for_others(self) -> None:
        """Where ZooKeeper was away from all, let all come back before anybody counts as gone.

        Otherwise the first to be back would lead what the others still lead as well. Where there is
        a controller, ZooKeeper was away from this broker alone.
        """
        known = set(self._known_brokers())
        with suppress(TimeoutError):
            async with asyncio.timeout(_REUNION_SECONDS):
                while await self._store.controller_id() is None:
                    if known <= (await self._store.brokers()).keys():
                        return
                    await asyncio.sleep(_REUNION_CHECK_SECONDS)


def _refuse(event: events.Event) -> None:
    """Tell whoever waits for an answer that this broker has none to give."""
    if isinstance(event, events.Asking) and not event.answer.done():
        event.answer.set_exception(ControllerMovedError("this broker is not the controller"))
