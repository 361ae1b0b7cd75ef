"""ListOffsets on a real broker: one scenario, many versions."""

import pytest

from network.protocol import ErrorCode
from tests.support.api import EARLIEST, LATEST, list_offset, new_topic, produce
from tests.support.raw_client import RawClient, make_batch

TIMESTAMP = 1_700_000_000_000


@pytest.mark.parametrize("version", range(1, 6))
def test_list_offsets_by_time(client: RawClient, version: int) -> None:
    topic = new_topic(client)
    assert list_offset(client, topic, LATEST, version).offset == 0
    produce(client, topic, make_batch(b"0", b"1", b"2", timestamp=TIMESTAMP))
    produce(client, topic, make_batch(b"3", timestamp=TIMESTAMP + 100))
    expected = {
        EARLIEST: (0, -1),
        LATEST: (4, -1),
        0: (0, TIMESTAMP),
        TIMESTAMP + 1: (1, TIMESTAMP + 1),
        TIMESTAMP + 3: (3, TIMESTAMP + 100),
        TIMESTAMP + 101: (-1, -1),
    }
    for timestamp, (offset, found_timestamp) in expected.items():
        found = list_offset(client, topic, timestamp, version)
        assert found.error_code == ErrorCode.NONE
        assert (found.offset, found.timestamp) == (offset, found_timestamp)
        if version >= 4:
            assert found.leader_epoch == (0 if offset >= 0 else -1)


def test_list_offsets_of_version_0_tells_where_segments_begin(client: RawClient) -> None:
    topic = new_topic(client, segment_bytes="500")
    for _ in range(3):
        produce(client, topic, make_batch(b"x" * 300))
    assert list_offset(client, topic, LATEST, 0, count=10).old_style_offsets == [3, 2, 1, 0]
    assert list_offset(client, topic, LATEST, 0, count=1).old_style_offsets == [3]
    assert list_offset(client, topic, EARLIEST, 0, count=10).old_style_offsets == [0]


def test_list_offsets_checks_the_leader_epoch(client: RawClient) -> None:
    topic = new_topic(client)
    assert list_offset(client, topic, LATEST, epoch=0).error_code == ErrorCode.NONE
    newer = list_offset(client, topic, LATEST, epoch=5)
    assert newer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    unknown = list_offset(client, "nowhere", LATEST)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
