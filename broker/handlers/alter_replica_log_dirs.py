"""AlterReplicaLogDirs: replicas move between the log directories of this broker.

0  directories with the partitions that are wanted there
1  throttled after the response
"""

from collections.abc import Iterator
from pathlib import Path

from broker.dispatch import RequestContext, handles
from broker.failures import EXPECTED_FAILURES, error_code
from broker.services import Services
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def _error(request: AlterReplicaLogDirsRequest, code: ErrorCode) -> AlterReplicaLogDirsResponse:
    return _response({(topic, index): code for topic, index, _ in _wishes(request)})


@handles(ApiKey.ALTER_REPLICA_LOG_DIRS, versions=(0, 1), on_error=_error)
def alter_replica_log_dirs(
    services: Services, _context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    codes: dict[tuple[str, int], ErrorCode] = {}
    for topic, index, directory in _wishes(request):
        try:
            services.log_dirs.move(topic, index, directory)
        except EXPECTED_FAILURES as error:
            codes[topic, index] = error_code(error)
        else:
            codes[topic, index] = ErrorCode.NONE
    return _response(codes)


def _wishes(request: AlterReplicaLogDirsRequest) -> Iterator[tuple[str, int, Path]]:
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                yield topic.name, index, Path(directory.path)


def _response(codes: dict[tuple[str, int], ErrorCode]) -> AlterReplicaLogDirsResponse:
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for (name, index), code in codes.items():
        topic = topics.setdefault(name, AlterReplicaLogDirTopicResult(topic_name=name))
        topic.partitions.append(
            AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
        )
    return AlterReplicaLogDirsResponse(results=list(topics.values()))
