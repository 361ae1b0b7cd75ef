"""Declared structs as objects: construction, comparison, text, and what they know of themselves."""

import copy

import pytest

from network.protocol import ApiKey, decode_message, encode_message, request_class, response_class
from network.protocol.compiler.plan import minimal_size
from network.protocol.messages.consumer_group_describe import Assignment, Member
from network.protocol.messages.fetch import FetchRequest, PartitionData
from network.protocol.messages.heartbeat import HeartbeatRequest
from network.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from network.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from network.protocol.schema import ZERO_UUID, Field, Message, Request, Struct
from network.protocol.versions import Versions
from tests.unit.network.protocol.samples import Sampler, every_message


def decoded(message: Message, version: int) -> Message:
    return decode_message(
        type(message), version, memoryview(b"".join(encode_message(message, version)))
    )


def test_every_field_has_the_default_of_its_declaration() -> None:
    request = FetchRequest()
    assert request.max_bytes == 0x7FFFFFFF
    assert request.session_epoch == -1
    assert request.rack_id == ""
    assert request.cluster_id is None
    assert request.replica_state is None
    assert request.topics == []
    assert MetadataRequestTopic().topic_id == ZERO_UUID
    assert MetadataRequest().allow_auto_topic_creation is True
    assert PartitionData().records is None


def test_mutable_defaults_are_not_shared() -> None:
    ProduceRequest().topic_data.append(TopicProduceData())
    assert ProduceRequest().topic_data == []
    Member().assignment.topic_partitions.append(None)  # type: ignore[arg-type]
    assert Member().assignment == Assignment()


def test_null_can_be_given_where_the_default_is_an_empty_list() -> None:
    assert MetadataRequest(topics=None).topics is None


def test_unknown_fields_are_refused_by_constructor_and_object() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'ack'"):
        ProduceRequest(ack=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        ProduceRequest().ack = 1  # type: ignore[attr-defined]


def test_messages_have_slots_only() -> None:
    for message, version in every_message():
        assert not hasattr(message(), "__dict__")
        assert not hasattr(decoded(message(), version), "__dict__")


def test_equality_is_by_value_and_type() -> None:
    assert PartitionProduceData(index=1) == PartitionProduceData(index=1)
    assert PartitionProduceData(index=1) != PartitionProduceData(index=2)
    assert PartitionProduceData() != TopicProduceData()
    assert PartitionProduceData(records=b"abc") == PartitionProduceData(records=memoryview(b"abc"))


def test_decoded_messages_are_like_constructed_ones() -> None:
    for message, version in every_message():
        sent = Sampler(1).message(message, version)
        received = decoded(sent, version)
        assert received == sent
        assert sent == received
        assert isinstance(received, message)
        assert type(received).__name__ == message.__name__
        assert (received.VERSIONS, received.FLEXIBLE) == (sent.VERSIONS, sent.FLEXIBLE)
        assert repr(received) == repr(sent)
        assert copy.copy(received) == sent


def test_text_names_the_fields_and_spares_the_records() -> None:
    partition = PartitionProduceData(index=3, records=bytes(1_000_000))
    assert repr(partition) == "PartitionProduceData(index=3, records=<1000000 bytes>)"
    assert repr(PartitionProduceData()) == "PartitionProduceData(index=0, records=None)"


def test_a_message_knows_its_api_and_versions() -> None:
    assert ProduceRequest.API_KEY is ApiKey.PRODUCE
    assert Versions(0, 11) == ProduceRequest.VERSIONS
    assert 9 in ProduceRequest.FLEXIBLE
    assert 8 not in ProduceRequest.FLEXIBLE


def test_request_and_response_of_an_api_have_the_same_versions() -> None:
    for api in ApiKey:
        assert request_class(api).VERSIONS == response_class(api).VERSIONS


def test_every_element_of_an_array_takes_at_least_one_byte() -> None:
    def arrays(struct: type[Struct], version: int) -> list[Field]:
        present = [field for field in struct.FIELDS if version in field.versions]
        nested = [f for field in present if field.struct for f in arrays(field.struct, version)]
        return [field for field in present if field.element is not None] + nested

    for message, version in every_message():
        for field in arrays(message, version):
            if field.struct is not None:
                assert minimal_size(field.struct, version, version in message.FLEXIBLE) > 0


def test_constructing_a_base_leaves_the_messages_below_it_alone() -> None:
    Request()
    assert HeartbeatRequest(group_id="g").group_id == "g"
    assert HeartbeatRequest().group_id == ""
