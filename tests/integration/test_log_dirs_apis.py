"""DescribeLogDirs and AlterReplicaLogDirs on a real broker with two log directories."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from network.protocol import ErrorCode
from network.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from network.protocol.messages.delete_topics import DeleteTopicsRequest
from network.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
)
from tests.support.api import create_topic, fetch, new_topic, produce, values
from tests.support.broker import BrokerProcess
from tests.support.raw_client import RawClient, make_batch
from tests.support.waiting import eventually

Found = dict[str, dict[tuple[str, int], DescribeLogDirsPartition]]


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [tmp_path_factory.mktemp("logs") / name for name in ("one", "two")]


@pytest.fixture(scope="module")
def broker(directories: list[Path]) -> Iterator[BrokerProcess]:
    overrides = {"log.dirs": ",".join(map(str, directories)), "log.segment.bytes": "1000000"}
    broker = BrokerProcess(directories[0], overrides)
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()


def describe(client: RawClient, *topics: str, version: int = 1) -> Found:
    """Partitions by directory; those of all topics where none is named."""
    wanted = [DescribableLogDirTopic(topic=topic, partitions=[0]) for topic in topics]
    response = client.ask(DescribeLogDirsRequest(topics=wanted or None), version)
    return {
        one.log_dir: {
            (topic.name, partition.partition_index): partition
            for topic in one.topics
            for partition in topic.partitions
        }
        for one in response.results
    }


def place(client: RawClient, topic: str) -> str:
    """The directory where a topic's first partition lies."""
    found = [
        directory
        for directory, partitions in describe(client, topic).items()
        if (topic, 0) in partitions and not partitions[topic, 0].is_future_key
    ]
    [directory] = found
    return directory


def move(client: RawClient, topic: str, directory: str | Path, version: int = 1) -> int:
    wanted = AlterReplicaLogDir(
        path=str(directory), topics=[AlterReplicaLogDirTopic(name=topic, partitions=[0])]
    )
    response = client.ask(AlterReplicaLogDirsRequest(dirs=[wanted]), version)
    code: int = response.results[0].partitions[0].error_code
    return code


def other(directories: list[Path], directory: str) -> str:
    [found] = [str(one) for one in directories if str(one) != directory]
    return found


@pytest.mark.parametrize("version", range(2))
def test_directories_tell_what_lies_in_them(
    client: RawClient, directories: list[Path], version: int
) -> None:
    topic, empty = new_topic(client), new_topic(client)
    batch = make_batch(b"x" * 100)
    produce(client, topic, batch)
    everything = describe(client, version=version)
    assert set(everything) == set(map(str, directories))
    sizes = {
        name: one.partition_size
        for partitions in everything.values()
        for (name, _), one in partitions.items()
    }
    assert (sizes[topic], sizes[empty]) == (len(batch), 0)
    some = describe(client, topic, version=version)
    [found] = [one for partitions in some.values() for one in partitions.values()]
    assert (found.partition_size, found.offset_lag, found.is_future_key) == (len(batch), 0, False)


@pytest.mark.parametrize("version", range(2))
def test_replica_moves_while_it_is_written_to(
    client: RawClient, directories: list[Path], version: int
) -> None:
    topic = new_topic(client)
    before = place(client, topic)
    target = other(directories, before)
    payload = os.urandom(400_000)
    for _ in range(20):
        produce(client, topic, make_batch(payload))
    assert move(client, topic, target, version) == ErrorCode.NONE
    written = 20
    while place(client, topic) == before:
        produce(client, topic, make_batch(b"%d" % written))
        written += 1
    produce(client, topic, make_batch(b"last"))
    assert list(Path(target).glob(f"{topic}-0"))
    assert not list(Path(before).glob(f"{topic}-0"))
    offset = 0
    while offset <= written:
        found = values(fetch(client, topic, offset))
        assert found
        for value in found:
            expected = payload if offset < 20 else b"%d" % offset
            assert value == (b"last" if offset == written else expected)
            offset += 1
    assert move(client, topic, target) == ErrorCode.NONE
    assert place(client, topic) == target


def test_move_goes_on_after_a_kill(broker: BrokerProcess, directories: list[Path]) -> None:
    with RawClient(broker.port) as client:
        topic = new_topic(client)
        before = place(client, topic)
        batch = make_batch(os.urandom(900_000))
        for _ in range(30):
            produce(client, topic, batch)
        assert move(client, topic, other(directories, before)) == ErrorCode.NONE
    broker.kill()
    broker.start()
    with RawClient(broker.port) as client:
        eventually(lambda: place(client, topic) != before)
        sizes = [one[topic, 0].partition_size for one in describe(client, topic).values() if one]
        assert sizes == [30 * len(batch)]
        assert len(values(fetch(client, topic, 29))) == 1
        assert produce(client, topic, batch).base_offset == 30


def test_moves_that_cannot_be_say_why(client: RawClient, tmp_path: Path) -> None:
    topic = new_topic(client)
    here = place(client, topic)
    assert move(client, topic, tmp_path) == ErrorCode.LOG_DIR_NOT_FOUND
    assert move(client, "never-was", here) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    long = "x" * 240
    create_topic(client, long)
    assert move(client, long, here) == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_replica_that_is_wanted_elsewhere_before_it_exists_is_made_there(
    client: RawClient, directories: list[Path]
) -> None:
    for number, directory in enumerate(map(str, directories)):
        topic = f"wanted-{number}"
        assert move(client, topic, directory) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        create_topic(client, topic)
        assert place(client, topic) == directory


def test_deleted_topic_takes_its_copy_along(client: RawClient, directories: list[Path]) -> None:
    topic = new_topic(client)
    batch = make_batch(os.urandom(900_000))
    for _ in range(20):
        produce(client, topic, batch)
    assert move(client, topic, other(directories, place(client, topic))) == ErrorCode.NONE
    request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=20_000)
    assert client.ask(request, 4).responses[0].error_code == ErrorCode.NONE
    eventually(lambda: not any(describe(client, topic).values()))
    left = [one for directory in directories for one in directory.glob(f"{topic}-0*")]
    assert all(one.name.endswith("-delete") for one in left)
