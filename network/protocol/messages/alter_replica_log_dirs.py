"""AlterReplicaLogDirs (34): replicas to be moved between the log directories of a broker."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import Request, Response, Struct, array, int16, int32, string


class AlterReplicaLogDirTopic(Struct):
    name: str = string()
    partitions: list[int] = array(int32)


class AlterReplicaLogDir(Struct):
    path: str = string()
    topics: list[AlterReplicaLogDirTopic] = array(AlterReplicaLogDirTopic)


class AlterReplicaLogDirsRequest(
    Request, api=ApiKey.ALTER_REPLICA_LOG_DIRS, versions="0-2", flexible="2+"
):
    dirs: list[AlterReplicaLogDir] = array(AlterReplicaLogDir)


class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: int = int32()
    error_code: int = int16()


class AlterReplicaLogDirTopicResult(Struct):
    topic_name: str = string()
    partitions: list[AlterReplicaLogDirPartitionResult] = array(AlterReplicaLogDirPartitionResult)


class AlterReplicaLogDirsResponse(
    Response, api=ApiKey.ALTER_REPLICA_LOG_DIRS, versions="0-2", flexible="2+"
):
    throttle_time_ms: int = int32()
    results: list[AlterReplicaLogDirTopicResult] = array(AlterReplicaLogDirTopicResult)
