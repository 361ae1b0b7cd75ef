"""Every message in every version survives being encoded and decoded."""

import pytest
from hypothesis import HealthCheck, given, settings

from network.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from network.protocol.schema import ApiMessage
from tests.unit.network.protocol.frames import decode_frame, encode_frame
from tests.unit.network.protocol.samples import Sampler, every_message, title
from tests.unit.network.protocol.strategies import messages

EVERY_MESSAGE = [pytest.param(*case, id=title(*case)) for case in every_message()]


@pytest.mark.parametrize(("message", "version"), EVERY_MESSAGE)
def test_any_message_survives_the_wire(message: type[ApiMessage], version: int) -> None:
    @settings(
        max_examples=6,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(messages(message, version))
    def check(sent: ApiMessage) -> None:
        frame = encode_frame(sent, version)
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        assert decode_frame(message, version, memoryview(frame)[4:]) == sent

    check()


@pytest.mark.parametrize("seed", range(3))
def test_long_arrays_of_unlike_elements_survive_the_wire(seed: int) -> None:
    for message, version in every_message():
        sent = Sampler(seed, longest_array=7).message(message, version)
        frame = bytearray(encode_frame(sent, version))
        assert decode_frame(message, version, memoryview(frame)[4:]) == sent


@pytest.mark.parametrize("count", [0, 1, 126, 127, 128, 129, 20_000])
def test_counts_of_any_width_survive_the_wire(count: int) -> None:
    partition = MetadataResponsePartition(replica_nodes=list(range(count)), isr_nodes=[7])
    topics = [MetadataResponseTopic(name="t" * (count % 30_000), partitions=[partition] * 3)]
    topics += [MetadataResponseTopic(name=str(number)) for number in range(count)]
    sent = MetadataResponse(topics=topics)
    for version in (8, 9):
        frame = encode_frame(sent, version)
        assert decode_frame(MetadataResponse, version, memoryview(frame)[4:]) == sent


def test_empty_message_of_any_version_survives_the_wire() -> None:
    for message, version in every_message():
        frame = encode_frame(message(), version)
        assert decode_frame(message, version, memoryview(frame)[4:]) == message()
