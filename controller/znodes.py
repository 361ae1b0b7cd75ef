"""Every znode that Apache Kafka 2.5 uses, declared once: its path, and its data to and from values.

The JSON is what Kafka 2.5.1 writes, field for field and in its order. Knows nothing of how znodes
are read and written, nor when.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from controller.cluster import (
    BrokerInfo,
    Endpoint,
    LeaderAndIsr,
    ReplicaAssignment,
    TopicPartition,
)

ADMIN: Final = "/admin"
BROKER_IDS: Final = "/brokers/ids"
BROKER_SEQUENCE: Final = "/brokers/seqid"
CLUSTER_ID: Final = "/cluster/id"
CONFIG_CHANGES: Final = "/config/changes"
CONSUMERS: Final = "/consumers"
CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
DELETE_TOPICS: Final = f"{ADMIN}/delete_topics"
ISR_CHANGES: Final = "/isr_change_notification"
LOG_DIR_EVENTS: Final = "/log_dir_event_notification"
PREFERRED_ELECTION: Final = f"{ADMIN}/preferred_replica_election"
PRODUCER_ID_BLOCK: Final = "/latest_producer_id_block"
REASSIGN_PARTITIONS: Final = f"{ADMIN}/reassign_partitions"
TOPICS: Final = "/brokers/topics"

CONFIG_CHANGE_PREFIX: Final = f"{CONFIG_CHANGES}/config_change_"
ISR_CHANGE_PREFIX: Final = f"{ISR_CHANGES}/isr_change_"
LOG_DIR_EVENT_PREFIX: Final = f"{LOG_DIR_EVENTS}/log_dir_event_"

TOPIC_CONFIGS: Final = "topics"
CLIENT_CONFIGS: Final = "clients"
USER_CONFIGS: Final = "users"
BROKER_CONFIGS: Final = "brokers"
CONFIG_KINDS: Final = (TOPIC_CONFIGS, CLIENT_CONFIGS, USER_CONFIGS, BROKER_CONFIGS)
DEFAULT_ENTITY: Final = "<default>"

# What a broker makes sure of before anything else, in the order in which Kafka creates it.
PERSISTENT_PATHS: Final = (
    CONSUMERS,
    BROKER_IDS,
    TOPICS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    BROKER_SEQUENCE,
    ISR_CHANGES,
    PRODUCER_ID_BLOCK,
    LOG_DIR_EVENTS,
    *(f"/config/{kind}" for kind in CONFIG_KINDS),
)

_ISR_CHANGE_VERSION: Final = 1
_LOG_DIR_FAILURE: Final = 1


class MalformedNodeError(Exception):
    """A znode's data is not what it should be."""


def _encode(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()


def _decode(path: str, data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except ValueError as error:
        raise MalformedNodeError(f"{path}: {error}") from None
    if not isinstance(content, dict):
        raise MalformedNodeError(f"{path}: no JSON object")
    return content


# -- brokers ---------------------------------------------------------------------------------


def broker(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def encode_broker(info: BrokerInfo, timestamp_ms: int) -> bytes:
    """Version 4; host and port are those of the first plaintext listener, for old clients."""
    plaintext = next((e for e in info.endpoints if e.security_protocol == "PLAINTEXT"), None)
    return _encode(
        {
            "listener_security_protocol_map": {
                endpoint.listener_name: endpoint.security_protocol for endpoint in info.endpoints
            },
            "endpoints": [str(endpoint) for endpoint in info.endpoints],
            **({} if info.rack is None else {"rack": info.rack}),
            "jmx_port": info.jmx_port,
            "port": plaintext.port if plaintext else -1,
            "host": plaintext.host if plaintext else None,
            "version": 4,
            "timestamp": str(timestamp_ms),
        }
    )


def decode_broker(broker_id: int, data: bytes, epoch: int) -> BrokerInfo:
    """Any version that Kafka has written, 1 to 5."""
    path = broker(broker_id)
    content = _decode(path, data)
    try:
        if content["version"] == 1:
            endpoints = [Endpoint("PLAINTEXT", "PLAINTEXT", content["host"], content["port"])]
        else:
            protocols = content.get("listener_security_protocol_map", {})
            endpoints = [_decode_endpoint(text, protocols) for text in content["endpoints"]]
        jmx_port = content.get("jmx_port", -1)
        return BrokerInfo(broker_id, tuple(endpoints), content.get("rack"), jmx_port, epoch)
    except (KeyError, ValueError) as error:
        raise MalformedNodeError(f"{path}: {error!r}") from None


def _decode_endpoint(text: str, protocols: Mapping[str, str]) -> Endpoint:
    listener_name, _, address = text.partition("://")
    host, _, port = address.rpartition(":")
    protocol = protocols.get(listener_name, listener_name)
    return Endpoint(listener_name, protocol, host.strip("[]"), int(port))


def encode_cluster_id(cluster_id: str) -> bytes:
    return _encode({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes) -> str:
    return str(_decode(CLUSTER_ID, data)["id"])


def encode_controller(broker_id: int, timestamp_ms: int) -> bytes:
    return _encode({"version": 1, "brokerid": broker_id, "timestamp": str(timestamp_ms)})


def decode_controller(data: bytes) -> int:
    return int(_decode(CONTROLLER, data)["brokerid"])


def encode_controller_epoch(epoch: int) -> bytes:
    return str(epoch).encode()


def decode_controller_epoch(data: bytes) -> int:
    return int(data)


# -- topics ----------------------------------------------------------------------------------


def topic(name: str) -> str:
    return f"{TOPICS}/{name}"


def topic_partitions(name: str) -> str:
    return f"{TOPICS}/{name}/partitions"


def partition(of: TopicPartition) -> str:
    return f"{TOPICS}/{of.topic}/partitions/{of.partition}"


def partition_state(of: TopicPartition) -> str:
    return f"{TOPICS}/{of.topic}/partitions/{of.partition}/state"


def deleted_topic(name: str) -> str:
    return f"{DELETE_TOPICS}/{name}"


def encode_topic(partitions: Mapping[int, ReplicaAssignment]) -> bytes:
    return _encode(
        {
            "version": 2,
            "partitions": {str(number): one.replicas for number, one in partitions.items()},
            "adding_replicas": {
                str(number): one.adding for number, one in partitions.items() if one.adding
            },
            "removing_replicas": {
                str(number): one.removing for number, one in partitions.items() if one.removing
            },
        }
    )


def decode_topic(name: str, data: bytes) -> dict[int, ReplicaAssignment]:
    """Versions 1 and 2, and the ones of later Kafkas; in the order of the partitions."""
    content = _decode(topic(name), data)
    partitions = content.get("partitions", {})
    adding = content.get("adding_replicas", {})
    removing = content.get("removing_replicas", {})
    return {
        int(number): ReplicaAssignment(
            tuple(partitions[number]),
            tuple(adding.get(number, ())),
            tuple(removing.get(number, ())),
        )
        for number in sorted(partitions, key=int)
    }


def encode_partition_state(state: LeaderAndIsr) -> bytes:
    return _encode(
        {
            "controller_epoch": state.controller_epoch,
            "leader": state.leader,
            "version": 1,
            "leader_epoch": state.leader_epoch,
            "isr": state.isr,
        }
    )


def decode_partition_state(of: TopicPartition, data: bytes, version: int) -> LeaderAndIsr:
    content = _decode(partition_state(of), data)
    try:
        return LeaderAndIsr(
            leader=content["leader"],
            isr=tuple(content["isr"]),
            leader_epoch=content["leader_epoch"],
            controller_epoch=content["controller_epoch"],
            version=version,
        )
    except KeyError as error:
        raise MalformedNodeError(f"{partition_state(of)}: no {error}") from None


# -- settings --------------------------------------------------------------------------------


def config(kind: str, name: str) -> str:
    return f"/config/{kind}/{name}"


def encode_config(settings: Mapping[str, str]) -> bytes:
    return _encode({"version": 1, "config": dict(settings)})


def decode_config(path: str, data: bytes) -> dict[str, str]:
    if not data:
        return {}
    settings = _decode(path, data).get("config", {})
    if not isinstance(settings, dict):
        raise MalformedNodeError(f"{path}: its config is no JSON object")
    return {name: str(value) for name, value in settings.items()}


def encode_config_change(entity_path: str) -> bytes:
    return _encode({"version": 2, "entity_path": entity_path})


def decode_config_change(path: str, data: bytes) -> tuple[str, str]:
    """The kind and the name of what has changed; version 1 spoke of topics and clients only."""
    content = _decode(path, data)
    try:
        match content["version"]:
            case 1 if content["entity_type"] in (TOPIC_CONFIGS, CLIENT_CONFIGS):
                return content["entity_type"], content["entity_name"]
            case 2:
                kind, slash, name = content["entity_path"].partition("/")
                if slash and kind in CONFIG_KINDS:
                    return kind, name
    except (KeyError, TypeError, AttributeError):
        pass
    raise MalformedNodeError(f"{path}: no change of a setting: {data!r}")


# -- requests and notices --------------------------------------------------------------------


def encode_isr_change(partitions: Iterable[TopicPartition]) -> bytes:
    return _encode({"version": _ISR_CHANGE_VERSION, "partitions": _partition_objects(partitions)})


def decode_isr_change(path: str, data: bytes) -> set[TopicPartition]:
    return _decode_partitions(path, data)


def encode_preferred_election(partitions: Iterable[TopicPartition]) -> bytes:
    return _encode({"version": 1, "partitions": _partition_objects(partitions)})


def decode_preferred_election(data: bytes) -> set[TopicPartition]:
    return _decode_partitions(PREFERRED_ELECTION, data)


def encode_log_dir_event(broker_id: int) -> bytes:
    return _encode({"version": 1, "broker": broker_id, "event": _LOG_DIR_FAILURE})


def decode_log_dir_event(path: str, data: bytes) -> int:
    try:
        return int(_decode(path, data)["broker"])
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedNodeError(f"{path}: {error!r}") from None


def encode_reassignment(targets: Mapping[TopicPartition, Iterable[int]]) -> bytes:
    return _encode(
        {
            "version": 1,
            "partitions": [
                {"topic": of.topic, "partition": of.partition, "replicas": list(replicas)}
                for of, replicas in targets.items()
            ],
        }
    )


def decode_reassignment(data: bytes) -> dict[TopicPartition, tuple[int, ...]]:
    content = _decode(REASSIGN_PARTITIONS, data)
    try:
        return {
            TopicPartition(one["topic"], one["partition"]): tuple(one["replicas"])
            for one in content["partitions"]
        }
    except (KeyError, TypeError) as error:
        raise MalformedNodeError(f"{REASSIGN_PARTITIONS}: {error!r}") from None


def encode_producer_id_block(broker_id: int, first: int, last: int) -> bytes:
    return _encode(
        {"version": 1, "broker": broker_id, "block_start": str(first), "block_end": str(last)}
    )


def decode_producer_id_block(data: bytes) -> tuple[int, int, int]:
    """The broker that has taken the block, its first and its last id."""
    content = _decode(PRODUCER_ID_BLOCK, data)
    return int(content["broker"]), int(content["block_start"]), int(content["block_end"])


def _partition_objects(partitions: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    return [{"topic": of.topic, "partition": of.partition} for of in partitions]


def _decode_partitions(path: str, data: bytes) -> set[TopicPartition]:
    content = _decode(path, data)
    try:
        return {TopicPartition(one["topic"], one["partition"]) for one in content["partitions"]}
    except (KeyError, TypeError) as error:
        raise MalformedNodeError(f"{path}: {error!r}") from None


# -- offsets of old consumers -----------------------------------------------------------------


def consumer_offset(group: str, partition: TopicPartition) -> str:
    return f"{CONSUMERS}/{group}/offsets/{partition.topic}/{partition.partition}"


def encode_consumer_offset(offset: int) -> bytes:
    return str(offset).encode()


def decode_consumer_offset(path: str, data: bytes) -> int:
    try:
        return int(data)
    except ValueError as error:
        raise MalformedNodeError(f"{path}: {error}") from None
