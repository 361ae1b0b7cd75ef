"""Znodes, held against bytes that Apache Kafka 2.5.1 (Scala 2.13) wrote for the same steps."""

import json

import pytest

from controller import znodes
from controller.cluster import (
    BrokerInfo,
    Endpoint,
    LeaderAndIsr,
    ReplicaAssignment,
    TopicPartition,
)

BROKER = (
    b'{"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
    b'"endpoints":["PLAINTEXT://127.0.0.1:54677"],"rack":"rack2","jmx_port":-1,"port":54677,'
    b'"host":"127.0.0.1","version":4,"timestamp":"1794965036248"}'
)
TOPIC = (
    b'{"version":2,"partitions":{"11":[2,0],"0":[0,1],"1":[1,2],"2":[2,0],"3":[0,1],"4":[1,2],'
    b'"5":[2,0],"6":[0,1],"7":[1,2],"8":[2,0],"9":[0,1],"10":[1,2]},"adding_replicas":{},'
    b'"removing_replicas":{}}'
)


def test_broker_registration_is_byte_for_byte_kafkas() -> None:
    info = znodes.decode_broker(2, BROKER, epoch=41)
    endpoint = Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 54677)
    assert info == BrokerInfo(2, (endpoint,), "rack2", -1, 41)
    assert znodes.encode_broker(info, 1794965036248) == BROKER


def test_broker_without_rack_or_plaintext_listener() -> None:
    info = BrokerInfo(0, (Endpoint("CLIENTS", "SSL", "::1", 9093),))
    content = json.loads(znodes.encode_broker(info, 5))
    assert content["host"] is None
    assert content["port"] == -1
    assert content["endpoints"] == ["CLIENTS://[::1]:9093"]
    assert "rack" not in content
    assert znodes.decode_broker(0, znodes.encode_broker(info, 5), -1) == info


@pytest.mark.parametrize(
    "data",
    [
        b'{"version":1,"host":"h","port":9092,"jmx_port":9999,"timestamp":"2233345666"}',
        b'{"version":2,"host":"h","port":9092,"jmx_port":9999,"timestamp":"2",'
        b'"endpoints":["PLAINTEXT://h:9092"]}',
        b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
        b'"endpoints":["PLAINTEXT://h:9092"],"jmx_port":9999,"port":9092,"host":"h","version":5,'
        b'"timestamp":"1"}',
    ],
)
def test_registrations_of_older_and_newer_kafkas_are_read(data: bytes) -> None:
    endpoint = Endpoint("PLAINTEXT", "PLAINTEXT", "h", 9092)
    assert znodes.decode_broker(0, data, 7) == BrokerInfo(0, (endpoint,), None, 9999, 7)


def test_topic_is_json_for_json_kafkas() -> None:
    assignment = znodes.decode_topic("t12", TOPIC)
    assert list(assignment) == list(range(12))
    assert assignment[11] == ReplicaAssignment((2, 0))
    written = znodes.encode_topic(assignment)
    assert json.loads(written) == json.loads(TOPIC)
    assert list(json.loads(written)) == list(json.loads(TOPIC))
    assert len(written) == len(TOPIC)


def test_reassignment_in_progress_is_part_of_the_topic() -> None:
    moving = {0: ReplicaAssignment((3, 1, 2), adding=(3,), removing=(1,))}
    written = znodes.encode_topic(moving)
    assert written == (
        b'{"version":2,"partitions":{"0":[3,1,2]},"adding_replicas":{"0":[3]},'
        b'"removing_replicas":{"0":[1]}}'
    )
    assert znodes.decode_topic("t", written) == moving


def test_partition_state_is_byte_for_byte_kafkas() -> None:
    data = b'{"controller_epoch":1,"leader":0,"version":1,"leader_epoch":0,"isr":[0,1]}'
    partition = TopicPartition("t12", 3)
    state = znodes.decode_partition_state(partition, data, version=4)
    assert state == LeaderAndIsr(0, (0, 1), 0, 1, 4)
    assert znodes.encode_partition_state(state) == data
    assert znodes.partition_state(partition) == "/brokers/topics/t12/partitions/3/state"


def test_small_nodes_are_byte_for_byte_kafkas() -> None:
    cluster_id = b'{"version":"1","id":"-hCDVNlrQoadzI_YvdOg1w"}'
    assert znodes.encode_cluster_id(znodes.decode_cluster_id(cluster_id)) == cluster_id
    controller = b'{"version":1,"brokerid":1,"timestamp":"1794965036341"}'
    assert znodes.decode_controller(controller) == 1
    assert znodes.encode_controller(1, 1794965036341) == controller
    assert znodes.encode_controller_epoch(1) == b"1"
    block = b'{"version":1,"broker":0,"block_start":"2000","block_end":"2999"}'
    assert znodes.encode_producer_id_block(*znodes.decode_producer_id_block(block)) == block
    assert znodes.encode_config({}) == b'{"version":1,"config":{}}'
    config = b'{"version":1,"config":{"max.message.bytes":"12345","min.insync.replicas":"1"}}'
    assert znodes.encode_config(znodes.decode_config("/config/topics/one", config)) == config
    change = b'{"version":2,"entity_path":"topics/one"}'
    assert znodes.encode_config_change("topics/one") == change


def test_notices_and_requests_are_read_as_written() -> None:
    partitions = {TopicPartition("a", 0), TopicPartition("b", 3)}
    data = znodes.encode_isr_change(partitions)
    assert znodes.decode_isr_change("/isr_change_notification/x", data) == partitions
    data = znodes.encode_preferred_election(partitions)
    assert znodes.decode_preferred_election(data) == partitions
    targets = {TopicPartition("a", 0): (1, 2)}
    assert znodes.decode_reassignment(znodes.encode_reassignment(targets)) == targets
    assert znodes.encode_log_dir_event(3) == b'{"version":1,"broker":3,"event":1}'
    assert znodes.decode_log_dir_event("/x", znodes.encode_log_dir_event(3)) == 3


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"version":4}'])
def test_broken_registration_is_an_error_that_names_its_node(data: bytes) -> None:
    with pytest.raises(znodes.MalformedNodeError, match="/brokers/ids/3"):
        znodes.decode_broker(3, data, 0)


def test_persistent_paths_are_those_of_kafka() -> None:
    assert set(znodes.PERSISTENT_PATHS) == {
        "/admin/delete_topics",
        "/brokers/ids",
        "/brokers/seqid",
        "/brokers/topics",
        "/config/brokers",
        "/config/changes",
        "/config/clients",
        "/config/topics",
        "/config/users",
        "/consumers",
        "/isr_change_notification",
        "/latest_producer_id_block",
        "/log_dir_event_notification",
    }
