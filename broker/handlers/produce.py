"""Produce: append record batches, one per partition.

3  transactional id; record batches of magic 2
4  KAFKA_STORAGE_ERROR may be returned
5  log start offset in the response
6  throttled after the response
7  zstd
8  errors of single records and an error message in the response
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from typing import Any, TypeAlias

from broker.delayed_produce import DelayedProduce, WaitingPartition
from broker.dispatch import RequestContext, Verdict, handles
from broker.failures import EXPECTED_FAILURES, ApiError, error_code
from broker.purgatory import Parked
from broker.services import Services
from broker.topic_names import is_internal
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from storage.errors import StorageError
from storage.records.errors import InvalidRecordError
from storage.records.layout import MAGIC_2, MAGIC_POSITION, Codec, parse_batch_header

logger = logging.getLogger(__name__)

Outcome: TypeAlias = ProduceResponse | Parked[ProduceResponse] | Verdict

VALID_ACKS = (-1, 0, 1)
ALL_IN_SYNC = -1
FIRST_VERSION_OF_MAGIC_2 = 3
LAST_VERSION_WITHOUT_STORAGE_ERROR = 3
FIRST_VERSION_WITH_ZSTD = 7
ADMIN_CLIENT_ID = "__admin_client"


def _error(request: ProduceRequest, code: ErrorCode) -> ProduceResponse | Verdict:
    if request.acks == 0:
        return Verdict.CLOSE_CONNECTION
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                partition_responses=[
                    PartitionProduceResponse(index=one.index, error_code=code, base_offset=-1)
                    for one in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


@handles(ApiKey.PRODUCE, versions=(0, 8), on_error=_error)
def produce(
    services: Services, context: RequestContext, request: ProduceRequest
) -> Outcome | Coroutine[Any, Any, Outcome]:
    if request.acks not in VALID_ACKS:
        return _error(request, ErrorCode.INVALID_REQUIRED_ACKS)
    response = ProduceResponse()
    for topic in request.topic_data:
        answer = TopicProduceResponse(name=topic.name)
        for data in topic.partition_data:
            result = _append(services, context, request, topic.name, data)
            answer.partition_responses.append(result)
        response.responses.append(answer)
    if services.flusher.is_busy:
        return _conclude_when_flushed(services, context, request, response)
    return _conclude(services, context, request, response)


async def _conclude_when_flushed(
    services: Services, context: RequestContext, request: ProduceRequest, response: ProduceResponse
) -> Outcome:
    """Where flush.messages made a flush due, nothing is acknowledged before it is done."""
    for topic, result in _successes(response):
        flush = services.flusher.pending(services.replicas.partitions[topic, result.index].log)
        if flush is not None:
            try:
                await asyncio.shield(flush)
            except StorageError as error:
                result.error_code = error_code(error)
    return _conclude(services, context, request, response)


def _conclude(
    services: Services, context: RequestContext, request: ProduceRequest, response: ProduceResponse
) -> Outcome:
    """Answer now, not at all, or when all in-sync replicas have what was appended."""
    if request.acks == 0:
        return _silent_verdict(context, response)
    if request.acks == ALL_IN_SYNC:
        waiting = [
            WaitingPartition(partition, partition.log.end_offset, result)
            for topic, result in _successes(response)
            if (partition := services.replicas.partitions[topic, result.index]).is_uncommitted
        ]
        if waiting:
            _let_go_of_records(request)
            keys = [one.partition.key for one in waiting]
            return services.replicas.delayed_produces.park(
                DelayedProduce(response, waiting), keys, request.timeout_ms / 1000
            )
    return response


def _let_go_of_records(request: ProduceRequest) -> None:
    """They are in the log: what waits for replicas must not hold their memory."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            data.records = None


def _successes(response: ProduceResponse) -> Iterator[tuple[str, PartitionProduceResponse]]:
    for topic in response.responses:
        for result in topic.partition_responses:
            if result.error_code == ErrorCode.NONE:
                yield topic.name, result


def _append(
    services: Services,
    context: RequestContext,
    request: ProduceRequest,
    topic: str,
    data: PartitionProduceData,
) -> PartitionProduceResponse:
    try:
        records = _checked_records(data, context.api_version)
        if is_internal(topic) and context.client_id != ADMIN_CLIENT_ID:
            raise ApiError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {topic}"
            )
        if not len(records):
            services.replicas.leader(topic, data.index)
            return PartitionProduceResponse(index=data.index, base_offset=-1)
        info = services.replicas.append(topic, data.index, records, request.acks)
    except EXPECTED_FAILURES as error:
        logger.debug(
            "Produce to %s-%d by %r failed: %s", topic, data.index, context.client_id, error
        )
        return _failure(data.index, error, context.api_version)
    return PartitionProduceResponse(
        index=data.index,
        base_offset=info.first_offset,
        log_append_time_ms=info.log_append_time,
        log_start_offset=info.log_start_offset,
    )


def _checked_records(data: PartitionProduceData, api_version: int) -> memoryview:
    """The records, if they are of a kind that this version may send."""
    records = data.records
    if not isinstance(records, memoryview):
        raise ApiError(ErrorCode.INVALID_RECORD, "There are no records")
    is_batch = len(records) > MAGIC_POSITION and records[MAGIC_POSITION] == MAGIC_2
    if not is_batch and api_version >= FIRST_VERSION_OF_MAGIC_2:
        raise ApiError(ErrorCode.INVALID_RECORD, "Exactly one batch of magic 2 is allowed")
    may_be_zstd = api_version >= FIRST_VERSION_WITH_ZSTD or not is_batch
    if not may_be_zstd and parse_batch_header(records).codec is Codec.ZSTD:
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    return records


def _failure(index: int, error: Exception, api_version: int) -> PartitionProduceResponse:
    code = error_code(error)
    if code == ErrorCode.KAFKA_STORAGE_ERROR and api_version <= LAST_VERSION_WITHOUT_STORAGE_ERROR:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    response = PartitionProduceResponse(
        index=index, error_code=code, base_offset=-1, log_start_offset=-1
    )
    response.error_message = error.message if isinstance(error, ApiError) else str(error)
    if isinstance(error, InvalidRecordError):
        response.record_errors = [
            BatchIndexAndErrorMessage(
                batch_index=fault.batch_index, batch_index_error_message=fault.message
            )
            for fault in error.faults
        ]
    return response


def _silent_verdict(context: RequestContext, response: ProduceResponse) -> Verdict:
    """acks=0: the client expects no response; closing is the only way to tell of an error."""
    failed = [
        f"{topic.name}-{one.index}: {ErrorCode(one.error_code).name}"
        for topic in response.responses
        for one in topic.partition_responses
        if one.error_code != ErrorCode.NONE
    ]
    if not failed:
        return Verdict.NO_RESPONSE
    logger.info(
        "Closing %s: produce with acks=0 by %r failed for %s",
        context.request.channel,
        context.client_id,
        ", ".join(failed),
    )
    return Verdict.CLOSE_CONNECTION
