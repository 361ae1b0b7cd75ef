"""DescribeLogDirs: the log directories of this broker, and the size of what lies in them.

0  topics, null for all
1  throttled after the response
"""

from collections.abc import Container
from pathlib import Path

from broker.dispatch import RequestContext, handles
from broker.services import Services
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def _error(_request: DescribeLogDirsRequest, _code: ErrorCode) -> DescribeLogDirsResponse:
    """There is no place for a code."""
    return DescribeLogDirsResponse()


@handles(ApiKey.DESCRIBE_LOG_DIRS, versions=(0, 1), on_error=_error)
def describe_log_dirs(
    services: Services, _context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    live = [_describe(services, directory, wanted) for directory in services.log_dirs.live]
    offline = [
        DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=str(directory))
        for directory in services.log_dirs.offline
    ]
    return DescribeLogDirsResponse(results=live + offline)


def _describe(
    services: Services, directory: Path, wanted: Container[tuple[str, int]] | None
) -> DescribeLogDirsResult:
    topics: dict[str, DescribeLogDirsTopic] = {}
    for one in services.log_dirs.replicas_in(directory):
        if wanted is None or (one.topic, one.partition) in wanted:
            topic = topics.setdefault(one.topic, DescribeLogDirsTopic(name=one.topic))
            topic.partitions.append(
                DescribeLogDirsPartition(
                    partition_index=one.partition,
                    partition_size=one.size,
                    offset_lag=one.lag,
                    is_future_key=one.is_future,
                )
            )
    return DescribeLogDirsResult(log_dir=str(directory), topics=list(topics.values()))
