"""Steps of administration, and the znodes after each: for Apache Kafka and for Barnabas alike.

What differs from run to run (times, ids, ports) is replaced by a word; all else must be the same.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from network.protocol import ErrorCode
from network.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from network.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from network.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from network.protocol.messages.delete_topics import DeleteTopicsRequest
from tests.support.api import describe
from tests.support.configs import BROKER, DELETE, SET, TOPIC, change, replace
from tests.support.raw_client import RawClient
from tests.support.waiting import eventually

# What both kinds of broker are run with.
SETTINGS: Final = {
    "broker.id": "0",
    "broker.rack": "r1",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
}
TIMEOUT_MS: Final = 20_000

Tree = dict[str, Any]


def take_steps(client: RawClient, connect: str) -> Iterator[tuple[str, Tree]]:
    """Each step's name, and all znodes once its traces are there."""
    yield "start", tree(connect)
    for step in (
        create,
        create_with_settings,
        add_partitions,
        alter_topic_config,
        remove_topic_config,
        alter_broker_config,
        alter_cluster_config,
        create_internal,
        reorder_replicas,
        delete,
    ):
        settled = step(client)
        eventually(lambda settled=settled: settled(tree(connect)))  # type: ignore[misc]
        yield step.__name__, tree(connect)


Settled = Callable[[Tree], bool]


def create(client: RawClient) -> Settled:
    _create(client, CreatableTopic(name="plain", num_partitions=2, replication_factor=1))
    return _has("/brokers/topics/plain/partitions/1/state")


def create_with_settings(client: RawClient) -> Settled:
    topic = CreatableTopic(
        name="chosen.one",
        num_partitions=-1,
        replication_factor=-1,
        assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[0])],
        configs=[
            CreatableTopicConfig(name="cleanup.policy", value="compact,delete"),
            CreatableTopicConfig(name="retention.ms", value="1234"),
        ],
    )
    _create(client, topic)
    return _has("/brokers/topics/chosen.one/partitions/0/state")


def add_partitions(client: RawClient) -> Settled:
    wanted = CreatePartitionsTopic(name="plain", count=11, assignments=None)
    request = CreatePartitionsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS)
    assert client.ask(request, 2).results[0].error_code == ErrorCode.NONE
    return _has("/brokers/topics/plain/partitions/10/state")


def alter_topic_config(client: RawClient) -> Settled:
    changes = (("segment.bytes", SET, "2000"), ("retention.ms", SET, "99"))
    assert change(client, TOPIC, "chosen.one", *changes)[0] == ErrorCode.NONE
    return _has("/config/changes/config_change_0000000000")


def remove_topic_config(client: RawClient) -> Settled:
    removal = ("segment.bytes", DELETE, None)
    assert change(client, TOPIC, "chosen.one", removal)[0] == ErrorCode.NONE
    return _has("/config/changes/config_change_0000000001")


def alter_broker_config(client: RawClient) -> Settled:
    settings: dict[str, str | None] = {"log.cleaner.threads": "2"}
    assert replace(client, BROKER, "0", settings)[0] == ErrorCode.NONE
    return _has("/config/changes/config_change_0000000002")


def alter_cluster_config(client: RawClient) -> Settled:
    settings: dict[str, str | None] = {"log.retention.ms": "100000"}
    assert replace(client, BROKER, "", settings)[0] == ErrorCode.NONE
    return _has("/config/changes/config_change_0000000003")


def create_internal(client: RawClient) -> Settled:
    for topic in ("__consumer_offsets", "__transaction_state"):
        describe(client, topic)
        eventually(lambda topic=topic: describe(client, topic).error_code == 0)  # type: ignore[misc]
    return _has("/brokers/topics/__transaction_state/partitions/0/state")


def reorder_replicas(client: RawClient) -> Settled:
    """A move to where the partition is already: it is written, and done at once."""
    wanted = ReassignablePartition(partition_index=0, replicas=[0])
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name="chosen.one", partitions=[wanted])]
    )
    response = client.ask(request, 0)
    assert response.responses[0].partitions[0].error_code == ErrorCode.NONE
    return lambda found: found["/brokers/topics/chosen.one/partitions/0/state"]["leader_epoch"] > 0


def delete(client: RawClient) -> Settled:
    request = DeleteTopicsRequest(topic_names=["plain", "chosen.one"], timeout_ms=TIMEOUT_MS)
    codes = [one.error_code for one in client.ask(request, 4).responses]
    assert codes == [ErrorCode.NONE, ErrorCode.NONE]
    return lambda found: not any("plain" in path or "chosen" in path for path in found)


def _create(client: RawClient, topic: CreatableTopic) -> None:
    request = CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
    assert client.ask(request, 5).topics[0].error_code == ErrorCode.NONE


def _has(path: str) -> Settled:
    return lambda found: path in found


def tree(connect: str) -> Tree:
    """Every znode with its data: JSON taken apart, or text, or None where there is none."""
    client = KazooClient(connect)
    client.start()
    try:
        found = _below(client, "/")
    finally:
        client.stop()
        client.close()
    return {path: _value(path, data) for path, data in sorted(found.items())}


def _below(client: KazooClient, path: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    try:
        for name in client.get_children(path):
            child = f"{path.rstrip('/')}/{name}"
            if child != "/zookeeper":
                found[child] = client.get(child)[0] or b""
                found |= _below(client, child)
    except NoNodeError:
        pass  # deleted while we look; whoever waits will look again
    return found


_VOLATILE: Final = {
    "/brokers/ids/0": ("timestamp", "endpoints", "host", "port"),
    "/cluster/id": ("id",),
    "/controller": ("timestamp",),
}


def _value(path: str, data: bytes) -> Any:
    if not data:
        return None
    value = json.loads(data)
    if isinstance(value, dict):
        for name in _VOLATILE.get(path, ()):
            value[name] = re.sub(r"\d+", "N", json.dumps(value[name]))
        if path == "/cluster/id":
            value["id"] = "ID"
    return value


def changes(steps: Iterable[tuple[str, Tree]]) -> dict[str, dict[str, Any]]:
    """By step: the znodes that it made or changed, and the paths of those that it removed."""
    before: Tree = {}
    kept: dict[str, dict[str, Any]] = {}
    for name, after in steps:
        kept[name] = {
            "changed": {p: v for p, v in after.items() if p not in before or before[p] != v},
            "gone": sorted(before.keys() - after.keys()),
        }
        before = after
    return kept
