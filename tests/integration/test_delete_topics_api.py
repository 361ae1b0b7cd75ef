"""DeleteTopics on a real broker: one scenario, many versions."""

from pathlib import Path

import pytest

from network.protocol import ErrorCode
from network.protocol.messages.create_topics import CreatableTopic
from network.protocol.messages.delete_topics import DeleteTopicsRequest
from tests.support.api import create, create_topic, describe, fetch, produce, values
from tests.support.broker import BrokerProcess, running_broker
from tests.support.raw_client import RawClient, make_batch
from tests.support.waiting import eventually


def delete(
    client: RawClient, *topics: str, version: int = 4, timeout_ms: int = 30_000
) -> list[int]:
    request = DeleteTopicsRequest(topic_names=list(topics), timeout_ms=timeout_ms)
    return [one.error_code for one in client.ask(request, version).responses]


@pytest.mark.parametrize("version", range(5))
def test_deleted_topic_is_gone_and_its_name_is_free(
    broker: BrokerProcess, client: RawClient, version: int
) -> None:
    topic = f"short-lived-{version}"
    wanted = CreatableTopic(name=topic, num_partitions=3, replication_factor=1)
    for _ in range(2):
        # The logs and the name follow the metadata by a moment, as with Kafka.
        eventually(lambda: create(client, wanted).error_code == ErrorCode.NONE)
        assert produce(client, topic, make_batch(b"gone soon")).base_offset == 0
        codes = delete(client, topic, "never-was", version=version)
        assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        described = describe(client, topic, allow_auto_topic_creation=False)
        assert described.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        eventually(lambda: not list(Path(broker.data).glob(f"{topic}-[0-9]")))
        assert fetch(client, topic, 0).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_deletion_without_time_to_wait_happens_all_the_same(client: RawClient) -> None:
    create_topic(client, "hasty-end")
    assert delete(client, "hasty-end", timeout_ms=0) == [ErrorCode.REQUEST_TIMED_OUT]
    eventually(
        lambda: (
            describe(client, "hasty-end", allow_auto_topic_creation=False).error_code
            == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
    )


@pytest.mark.parametrize(
    ("version", "code"),
    [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)],
)
def test_deletion_can_be_switched_off(tmp_path: Path, version: int, code: ErrorCode) -> None:
    with (
        running_broker(tmp_path / "logs", {"delete.topic.enable": "false"}) as broker,
        RawClient(broker.port) as client,
    ):
        create_topic(client, "safe")
        produce(client, "safe", make_batch(b"kept"))
        assert delete(client, "safe", version=version) == [code]
        assert values(fetch(client, "safe", 0)) == [b"kept"]
