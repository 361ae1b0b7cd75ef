"""The commits of a group as `__consumer_offsets` holds them, in the order of the log."""

from collections import defaultdict
from collections.abc import Iterator

from confluent_kafka import Consumer, Message, TopicPartition

from broker.groups.partitions import partition_for
from broker.groups.record_formats import OffsetKey, decode_key, decode_offset_value
from broker.topic_names import GROUP_METADATA_TOPIC
from tests.interop.group_ledger import Commit

TIMEOUT_SECONDS = 30.0


def commits_of(bootstrap: str, group: str, topic: str) -> dict[int, list[Commit]]:
    """Every commit for a topic, by partition."""
    commits = defaultdict(list)
    for message in _records(bootstrap, group):
        key, value = message.key(), message.value()
        assert isinstance(key, bytes)
        place = decode_key(key)
        if isinstance(place, OffsetKey) and (place.group, place.topic) == (group, topic):
            assert value is not None, f"a commit of {place} was removed"
            committed = decode_offset_value(value)
            commits[place.partition].append(Commit(committed.offset, committed.commit_timestamp))
    return commits


def _records(bootstrap: str, group: str) -> Iterator[Message]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
    )
    try:
        topic = consumer.list_topics(GROUP_METADATA_TOPIC, TIMEOUT_SECONDS).topics
        number = partition_for(group, len(topic[GROUP_METADATA_TOPIC].partitions))
        partition = TopicPartition(GROUP_METADATA_TOPIC, number, 0)
        _, end = consumer.get_watermark_offsets(partition, TIMEOUT_SECONDS)
        consumer.assign([partition])
        position = 0
        while position < end:
            message = consumer.poll(TIMEOUT_SECONDS)
            assert message is not None, f"{partition} cannot be read beyond {position}"
            assert message.error() is None, message.error()
            offset = message.offset()
            assert offset is not None
            position = offset + 1
            yield message
    finally:
        consumer.close()
