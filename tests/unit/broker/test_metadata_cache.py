from broker.metadata_cache import LEADER_DURING_DELETE, MetadataCache, Node
from network.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)


def broker(number: int, *listeners: str) -> UpdateMetadataBroker:
    return UpdateMetadataBroker(
        id=number,
        rack="r1",
        endpoints=[
            UpdateMetadataEndpoint(
                host=f"host{number}", port=9000 + number, listener=name, security_protocol=0
            )
            for name in listeners
        ],
    )


def update(
    states: dict[str, list[tuple[int, int]]], *brokers: UpdateMetadataBroker
) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(
        controller_id=1,
        topic_states=[
            UpdateMetadataTopicState(
                topic_name=topic,
                partition_states=[
                    UpdateMetadataPartitionState(
                        partition_index=index, leader=leader, isr=[leader], replicas=[leader]
                    )
                    for index, leader in partitions
                ],
            )
            for topic, partitions in states.items()
        ],
        live_brokers=list(brokers),
    )


def test_partial_updates_add_to_what_is_known() -> None:
    cache = MetadataCache()
    cache.update(update({"a": [(0, 1)]}, broker(1, "PLAINTEXT")))
    cache.update(update({"a": [(1, 1)], "b": [(0, 1)]}, broker(1, "PLAINTEXT")))
    assert cache.topics == ["a", "b"]
    assert cache.has_partition("a", 0)
    assert cache.has_partition("a", 1)
    assert not cache.has_partition("a", 2)


def test_brokers_are_replaced_as_a_whole() -> None:
    cache = MetadataCache()
    cache.update(update({}, broker(1, "PLAINTEXT"), broker(2, "PLAINTEXT")))
    cache.update(update({}, broker(2, "PLAINTEXT", "OTHER")))
    assert list(cache.brokers) == [2]
    assert cache.live_nodes("OTHER") == [Node(2, "host2", 9002, "r1")]
    assert cache.node(2, "MISSING") is None
    assert cache.controller_id == 1


def test_partition_being_deleted_is_forgotten_and_told() -> None:
    cache = MetadataCache()
    cache.update(update({"a": [(0, 1), (1, 1)]}))
    assert cache.update(update({"a": [(0, LEADER_DURING_DELETE)]})) == [("a", 0)]
    assert not cache.has_partition("a", 0)
    assert cache.update(update({"a": [(1, LEADER_DURING_DELETE)]})) == [("a", 1)]
    assert "a" not in cache


def test_listeners_are_told_of_every_topic_that_changed_once() -> None:
    cache = MetadataCache()
    told: list[str] = []
    cache.on_topic_changed(told.append)
    cache.update(update({"a": [(0, 1), (1, 1)], "b": [(0, 1)]}))
    assert told == ["a", "b"]


def test_old_controllers_name_endpoints_by_protocol_or_not_at_all() -> None:
    cache = MetadataCache()
    by_protocol = broker(1, "")
    bare = UpdateMetadataBroker(id=2, v0_host="old", v0_port=1)
    cache.update(update({}, by_protocol, bare))
    assert cache.node(1, "PLAINTEXT") == Node(1, "host1", 9001, "r1")
    assert cache.node(2, "PLAINTEXT") == Node(2, "old", 1, None)
