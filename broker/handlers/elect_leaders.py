"""ElectLeaders: the controller gives partitions the leaders that they should have.

0  preferred leaders only
1  election type: 0 preferred, 1 unclean; an error on top
2  flexible
"""

from collections.abc import Collection, Mapping

from broker.delayed_metadata import DelayedMetadata
from broker.dispatch import RequestContext, handles
from broker.purgatory import Parked
from broker.services import Services
from controller.cluster import TopicPartition
from controller.elections import ElectionFailedError, Strategy
from controller.metadata_store import ControllerMovedError
from controller.preferred_elections import (
    ElectionNotNeededError,
    TopicDeletedError,
    UnknownPartitionError,
)
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

STRATEGIES = {0: Strategy.PREFERRED, 1: Strategy.UNCLEAN}
FAILURES: dict[type[ElectionFailedError], ErrorCode] = {
    ElectionNotNeededError: ErrorCode.ELECTION_NOT_NEEDED,
    UnknownPartitionError: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    TopicDeletedError: ErrorCode.INVALID_TOPIC_EXCEPTION,
}
NO_SUCH_LEADER = {
    Strategy.PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    Strategy.UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}

Results = Mapping[TopicPartition, PartitionResult]


def _error(request: ElectLeadersRequest, code: ErrorCode) -> ElectLeadersResponse:
    response = _response({one: _result(one, code) for one in _named(request)})
    response.error_code = code
    return response


@handles(ApiKey.ELECT_LEADERS, versions=(0, 2), on_error=_error)
async def elect_leaders(
    services: Services, _context: RequestContext, request: ElectLeadersRequest
) -> ElectLeadersResponse | Parked[ElectLeadersResponse]:
    strategy = STRATEGIES.get(request.election_type)
    if strategy is None:
        return _error(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    asks_for_all = request.topic_partitions is None
    asked = _named(request) if not asks_for_all else _all_partitions(services)
    try:
        outcomes = await services.controller.elect_leaders(asked, strategy)
    except ControllerMovedError:
        return _response({one: _result(one, ErrorCode.NOT_CONTROLLER) for one in asked})
    elected: dict[TopicPartition, int] = {}
    results: dict[TopicPartition, PartitionResult] = {}
    for partition, outcome in outcomes.items():
        if not isinstance(outcome, ElectionFailedError):
            elected[partition] = outcome.leader
            results[partition] = _result(partition, ErrorCode.NONE)
        elif not (asks_for_all and isinstance(outcome, ElectionNotNeededError)):
            code = FAILURES.get(type(outcome), NO_SUCH_LEADER[strategy])
            results[partition] = _result(partition, code, str(outcome))

    def answer(timed_out: Collection[TopicPartition]) -> ElectLeadersResponse:
        late = {one: _result(one, ErrorCode.REQUEST_TIMED_OUT) for one in timed_out}
        return _response(results | late)

    waiting = DelayedMetadata(
        elected, lambda one: services.metadata.leader(*one) == elected[one], answer
    )
    topics = {one.topic for one in elected}
    return waiting.answer_in_time(services.topics.delayed_operations, topics, request.timeout_ms)


def _all_partitions(services: Services) -> list[TopicPartition]:
    return [TopicPartition(*one) for one in services.metadata.all_partitions()]


def _named(request: ElectLeadersRequest) -> list[TopicPartition]:
    return [
        TopicPartition(topic.topic, index)
        for topic in request.topic_partitions or ()
        for index in topic.partitions
    ]


def _result(
    partition: TopicPartition, code: ErrorCode, message: str | None = None
) -> PartitionResult:
    return PartitionResult(partition_id=partition.partition, error_code=code, error_message=message)


def _response(results: Results) -> ElectLeadersResponse:
    by_topic: dict[str, list[PartitionResult]] = {}
    for partition, result in results.items():
        by_topic.setdefault(partition.topic, []).append(result)
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(topic=topic, partition_result=found)
            for topic, found in by_topic.items()
        ]
    )
