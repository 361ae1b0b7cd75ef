"""Fetch: record batches from an offset on, as file slices.

4   isolation level, aborted transactions; record batches of magic 2
5   log start offset
6   KAFKA_STORAGE_ERROR may be returned
7   fetch sessions: only changes are asked for and told
8   throttled after the response
9   current leader epoch
10  zstd
11  rack id, preferred read replica
"""

import logging
from collections.abc import Iterator, Sequence, Sized

from broker.dispatch import RequestContext, handles
from broker.failures import EXPECTED_FAILURES, ApiError, error_code
from broker.fetch_progress import FetchProgress
from broker.fetch_sessions import FetchContext
from broker.old_clients import newest_magic, readable_records
from broker.purgatory import DelayedOperation, Parked
from broker.replica_manager import (
    FetchParameters,
    FetchSpec,
    PartitionKey,
    PartitionRead,
    ReplicaManager,
)
from broker.services import Services
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from storage.log import LogRead, ReadIsolation
from storage.txn_index import AbortedTransaction as StoredAbort

logger = logging.getLogger(__name__)

READ_COMMITTED = 1
LAST_VERSION_WITH_HARD_LIMITS = 2
LAST_VERSION_WITHOUT_STORAGE_ERROR = 5
FIRST_VERSION_WITH_ZSTD = 10


def _error(request: FetchRequest, code: ErrorCode) -> FetchResponse:
    """The code on top, and in every partition for versions that have none on top."""
    return FetchResponse(
        error_code=code,
        session_id=request.session_id,
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=[_failed(one.partition, code) for one in topic.partitions],
            )
            for topic in request.topics
        ],
    )


@handles(ApiKey.FETCH, versions=(0, 11), on_error=_error)
def fetch(
    services: Services, context: RequestContext, request: FetchRequest
) -> FetchResponse | Parked[FetchResponse]:
    try:
        session = services.fetch_sessions.context(
            request.session_id,
            request.session_epoch,
            list(_specs(request)),
            _forgotten(request),
            privileged=request.replica_id >= 0,
        )
    except ApiError as error:
        return FetchResponse(error_code=error.code)
    parameters = _parameters(services, request, context.api_version, session.specs)
    delayed = DelayedFetch(services.replicas, parameters, context.api_version, session)
    response = delayed.try_result()
    if response is not None:
        return response
    if request.max_wait_ms <= 0 or not parameters.partitions:
        return delayed.expired_result()
    keys = [(spec.topic, spec.partition) for spec in parameters.partitions]
    return services.replicas.delayed_fetches.park(delayed, keys, request.max_wait_ms / 1000)


class DelayedFetch(DelayedOperation[FetchResponse]):
    """Done when there are min_bytes to be had, or when a partition has an error to tell."""

    def __init__(
        self,
        replicas: ReplicaManager,
        parameters: FetchParameters,
        api_version: int,
        session: FetchContext,
    ) -> None:
        self._replicas = replicas
        self._parameters = parameters
        self._api_version = api_version
        self._session = session
        self._progress: FetchProgress | None = None

    def try_result(self) -> FetchResponse | None:
        if self._progress is not None and not self._progress.may_suffice():
            return None
        reads = self._replicas.read(self._parameters)
        available = 0
        for read in reads:
            if read.data is None:
                return self._response(reads)
            available += len(read.data.slice)
        if available >= self._parameters.min_bytes:
            return self._response(reads)
        self._progress = FetchProgress(self._replicas, self._parameters, reads)
        return None

    def expired_result(self) -> FetchResponse:
        return self._response(self._replicas.read(self._parameters))

    def _response(self, reads: Sequence[PartitionRead]) -> FetchResponse:
        answer = self._session.answer(reads)
        response = FetchResponse(error_code=answer.error, session_id=answer.session_id)
        topic: FetchableTopicResponse | None = None
        for read in answer.reads:
            if topic is None or topic.topic != read.spec.topic:
                topic = FetchableTopicResponse(topic=read.spec.topic)
                response.responses.append(topic)
            topic.partitions.append(self._partition(read))
        return response

    def _partition(self, read: PartitionRead) -> PartitionData:
        spec, data = read.spec, read.data
        if data is None:
            return _failed(spec.partition, self._code_for_version(read.error))
        try:
            records = self._records(spec, data)
        except EXPECTED_FAILURES as error:
            return _failed(spec.partition, error_code(error))
        return PartitionData(
            partition_index=spec.partition,
            high_watermark=data.high_watermark,
            last_stable_offset=data.last_stable_offset,
            log_start_offset=data.start_offset,
            aborted_transactions=_aborted(data.aborted),
            records=records,
        )

    def _code_for_version(self, code: ErrorCode) -> ErrorCode:
        is_new_to_client = self._api_version <= LAST_VERSION_WITHOUT_STORAGE_ERROR
        if code == ErrorCode.KAFKA_STORAGE_ERROR and is_new_to_client:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return code

    def _records(self, spec: FetchSpec, data: LogRead) -> Sized:
        """The slice itself, unless the client is too old for what is in it."""
        if self._api_version >= FIRST_VERSION_WITH_ZSTD:
            return data.slice
        log = self._replicas.partitions[spec.topic, spec.partition].log
        if log.config.compression_type == "zstd":
            raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        magic = newest_magic(self._api_version)
        if magic is None:
            return data.slice
        return readable_records(log, data, spec.offset, spec.max_bytes, magic)


def _parameters(
    services: Services, request: FetchRequest, api_version: int, specs: Sequence[FetchSpec]
) -> FetchParameters:
    if request.replica_id >= 0:
        isolation = ReadIsolation.LOG_END
    elif request.isolation_level == READ_COMMITTED:
        isolation = ReadIsolation.COMMITTED
    else:
        isolation = ReadIsolation.HIGH_WATERMARK
    max_bytes = min(request.max_bytes, services.settings.fetch_max_bytes)
    return FetchParameters(
        replica_id=request.replica_id,
        min_bytes=min(request.min_bytes, max_bytes),
        max_bytes=max_bytes,
        isolation=isolation,
        partitions=specs,
        hard_max_bytes=api_version <= LAST_VERSION_WITH_HARD_LIMITS,
    )


def _specs(request: FetchRequest) -> Iterator[FetchSpec]:
    for topic in request.topics:
        for one in topic.partitions:
            yield FetchSpec(
                topic.topic,
                one.partition,
                one.fetch_offset,
                one.partition_max_bytes,
                one.current_leader_epoch,
                one.log_start_offset,
            )


def _forgotten(request: FetchRequest) -> Iterator[PartitionKey]:
    for topic in request.forgotten_topics_data:
        for partition in topic.partitions:
            yield topic.topic, partition


def _failed(partition: int, code: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=partition,
        error_code=code,
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )


def _aborted(aborted: Sequence[StoredAbort] | None) -> list[AbortedTransaction] | None:
    if aborted is None:
        return None
    return [
        AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset)
        for one in aborted
    ]
