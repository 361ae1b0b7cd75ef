"""The states of a broker's life, by the numbers that operators of Kafka know."""

import logging
from collections.abc import Callable
from enum import IntEnum

logger = logging.getLogger(__name__)


class BrokerState(IntEnum):
    NOT_RUNNING = 0
    STARTING = 1
    RECOVERING_FROM_UNCLEAN_SHUTDOWN = 2
    RUNNING_AS_BROKER = 3
    RUNNING_AS_CONTROLLER = 4
    PENDING_CONTROLLED_SHUTDOWN = 6
    BROKER_SHUTTING_DOWN = 7


class BrokerLife:
    """The state that a broker is in, as far as its parts have told."""

    def __init__(self) -> None:
        self._state = BrokerState.NOT_RUNNING
        self._is_controller: Callable[[], bool] = lambda: False

    @property
    def state(self) -> BrokerState:
        if self._state is BrokerState.RUNNING_AS_BROKER and self._is_controller():
            return BrokerState.RUNNING_AS_CONTROLLER
        return self._state

    def enter(self, state: BrokerState) -> None:
        logger.debug("Broker state: %s (%d)", state.name, state)
        self._state = state

    def knows_by(self, is_controller: Callable[[], bool]) -> None:
        """How to find out whether this broker is the controller."""
        self._is_controller = is_controller


RUNNING = (BrokerState.RUNNING_AS_BROKER, BrokerState.RUNNING_AS_CONTROLLER)
STOPPING = (BrokerState.PENDING_CONTROLLED_SHUTDOWN, BrokerState.BROKER_SHUTTING_DOWN)
