"""Messages that only brokers exchange, which client libraries do not know, byte for byte."""

from pathlib import Path

import pytest

from network.protocol import ApiKey, encode_message, request_class, response_class
from tests.unit.network.protocol.frames import decode_frame, encode_frame
from tests.unit.network.protocol.inter_broker_samples import MAKERS

RECORDED: list[tuple[str, int, bytes]] = [
    (name, int(version), bytes.fromhex(body))
    for name, version, body in (
        line.split()
        for line in Path(__file__).with_name("inter_broker_bytes.txt").read_text().splitlines()
        if not line.startswith("#")
    )
]
CASES = [pytest.param(*case, id=f"{case[0]}-v{case[1]}") for case in RECORDED]


@pytest.mark.parametrize(("name", "version", "body"), CASES)
def test_the_bytes_are_those_of_apache_kafka(name: str, version: int, body: bytes) -> None:
    message = MAKERS[name](version)
    assert b"".join(encode_message(message, version)) == body


@pytest.mark.parametrize(("name", "version", "body"), CASES)
def test_the_bytes_of_apache_kafka_decode(name: str, version: int, body: bytes) -> None:
    message = MAKERS[name](version)
    frame = encode_frame(message, version)[4:]
    assert frame.endswith(body)
    decoded = decode_frame(type(message), version, memoryview(frame))
    assert b"".join(encode_message(decoded, version)) == body


def test_all_versions_are_recorded() -> None:
    apis = (
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
    )
    expected = {
        (message.__name__, version)
        for api in apis
        for message in (request_class(api), response_class(api))
        for version in range(message.VERSIONS.highest + 1)
    }
    assert {(name, version) for name, version, _ in RECORDED} == expected
