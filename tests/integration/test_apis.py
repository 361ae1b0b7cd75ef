"""Every API in every version that is served, on a real broker: one scenario, many versions."""

import itertools

import pytest

from network.client import ConnectionEnded
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.api_versions import ApiVersionsRequest
from network.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from network.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from network.protocol.messages.find_coordinator import FindCoordinatorRequest
from network.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from network.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponseTopic,
)
from network.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from storage.records import Codec, iter_batches
from tests.support.broker import BrokerProcess
from tests.support.raw_client import RawClient, make_batch, make_messages, read_records

TIMESTAMP = 1_700_000_000_000
LATEST, EARLIEST = -1, -2
PLENTY = 1 << 20

numbers = itertools.count()


def new_topic(client: RawClient, partitions: int = 1, **config: str) -> str:
    name = f"topic-{next(numbers)}"
    settings = [
        CreatableTopicConfig(name=key.replace("_", "."), value=value)
        for key, value in config.items()
    ]
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, configs=settings
    )
    result = create(client, topic)
    assert result.error_code == ErrorCode.NONE, result
    return name


def create(
    client: RawClient, topic: CreatableTopic, version: int = 5, timeout_ms: int = 20_000
) -> CreatableTopicResult:
    request = CreateTopicsRequest(topics=[topic], timeout_ms=timeout_ms)
    result: CreatableTopicResult = client.ask(request, version).topics[0]
    return result


def produce(
    client: RawClient,
    topic: str,
    batch: bytes,
    *,
    version: int = 8,
    acks: int = -1,
    partition: int = 0,
) -> PartitionProduceResponse:
    request = ProduceRequest(
        acks=acks,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(
                name=topic,
                partition_data=[
                    PartitionProduceData(index=partition, records=memoryview(bytearray(batch)))
                ],
            )
        ],
    )
    result: PartitionProduceResponse = (
        client.ask(request, version).responses[0].partition_responses[0]
    )
    return result


def fetch(
    client: RawClient,
    topic: str,
    offset: int,
    *,
    version: int = 11,
    max_bytes: int = PLENTY,
    min_bytes: int = 1,
    max_wait_ms: int = 0,
    partition_max_bytes: int = PLENTY,
) -> PartitionData:
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(
                        partition=0, fetch_offset=offset, partition_max_bytes=partition_max_bytes
                    )
                ],
            )
        ],
    )
    result: PartitionData = client.ask(request, version).responses[0].partitions[0]
    return result


def values(data: PartitionData) -> list[bytes | None]:
    assert isinstance(data.records, memoryview)
    return [record.value for record in read_records(data.records)]


def list_offset(
    client: RawClient,
    topic: str,
    timestamp: int,
    version: int = 5,
    *,
    epoch: int = -1,
    count: int = 1,
) -> ListOffsetsPartitionResponse:
    wanted = ListOffsetsPartition(
        partition_index=0, timestamp=timestamp, current_leader_epoch=epoch, max_num_offsets=count
    )
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])]
    )
    result: ListOffsetsPartitionResponse = client.ask(request, version).topics[0].partitions[0]
    return result


def describe(
    client: RawClient, topic: str, version: int = 9, **options: bool
) -> MetadataResponseTopic:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], **options)
    result: MetadataResponseTopic = client.ask(request, version).topics[0]
    return result


# --- ApiVersions -----------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(4))
def test_api_versions_lists_exactly_what_is_served(client: RawClient, version: int) -> None:
    request = ApiVersionsRequest()
    if version == 3:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    response = client.ask(request, version)
    assert response.error_code == ErrorCode.NONE
    served = {one.api_key: (one.min_version, one.max_version) for one in response.api_keys}
    assert served == {
        ApiKey.PRODUCE: (0, 8),
        ApiKey.FETCH: (0, 11),
        ApiKey.LIST_OFFSETS: (0, 5),
        ApiKey.METADATA: (0, 9),
        ApiKey.LEADER_AND_ISR: (0, 4),
        ApiKey.UPDATE_METADATA: (0, 6),
        ApiKey.FIND_COORDINATOR: (0, 3),
        ApiKey.API_VERSIONS: (0, 3),
        ApiKey.CREATE_TOPICS: (0, 5),
    }


@pytest.mark.parametrize("name", ["", "-x", "a b", "ä"])
def test_api_versions_refuses_a_malformed_software_name(client: RawClient, name: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version="1")
    assert client.ask(request, 3).error_code == ErrorCode.INVALID_REQUEST


# --- Metadata --------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(10))
def test_metadata_describes_broker_and_topic(
    broker: BrokerProcess, client: RawClient, version: int
) -> None:
    topic = new_topic(client, partitions=3)
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    response = client.ask(request, version)
    node = response.brokers[0]
    assert (node.node_id, node.host, node.port) == (0, "127.0.0.1", broker.port)
    if version >= 1:
        assert response.controller_id == 0
    if version >= 2:
        assert response.cluster_id
    described = response.topics[0]
    assert (described.name, described.error_code) == (topic, ErrorCode.NONE)
    assert sorted(one.partition_index for one in described.partitions) == [0, 1, 2]
    for one in described.partitions:
        assert one.error_code == ErrorCode.NONE
        assert (one.leader_id, one.replica_nodes, one.isr_nodes) == (0, [0], [0])
        assert one.leader_epoch == (0 if version >= 7 else -1)


@pytest.mark.parametrize("version", range(10))
def test_metadata_of_all_topics(client: RawClient, version: int) -> None:
    topic = new_topic(client)
    request = MetadataRequest(topics=[] if version == 0 else None)
    assert topic in [one.name for one in client.ask(request, version).topics]
    if version > 0:
        assert client.ask(MetadataRequest(topics=[]), version).topics == []


@pytest.mark.parametrize("version", range(10))
def test_metadata_creates_what_is_missing(client: RawClient, version: int) -> None:
    topic = f"auto-{version}"
    assert describe(client, topic, version).error_code == ErrorCode.LEADER_NOT_AVAILABLE
    for _ in range(100):
        described = describe(client, topic, version)
        if described.error_code == ErrorCode.NONE:
            break
    assert len(described.partitions) == 2


@pytest.mark.parametrize("version", range(4, 10))
def test_metadata_creates_nothing_when_told_so(client: RawClient, version: int) -> None:
    for _ in range(2):
        described = describe(client, "unwanted", version, allow_auto_topic_creation=False)
        assert described.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_metadata_refuses_to_create_an_illegal_name(client: RawClient) -> None:
    assert describe(client, "no/good").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_metadata_tells_authorized_operations_when_asked(client: RawClient) -> None:
    topic = new_topic(client)
    assert describe(client, topic).topic_authorized_operations == -(2**31)
    asked = describe(client, topic, include_topic_authorized_operations=True)
    assert asked.topic_authorized_operations == 0b110111111000
    request = MetadataRequest(topics=[], include_cluster_authorized_operations=True)
    assert client.ask(request, 9).cluster_authorized_operations == 0b1111110100000


# --- CreateTopics ----------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(6))
def test_create_topic_by_numbers_and_by_assignment(client: RawClient, version: int) -> None:
    by_number = CreatableTopic(name=f"numbers-{version}", num_partitions=2, replication_factor=1)
    assigned = CreatableTopic(
        name=f"assigned-{version}",
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=[0]) for index in range(3)
        ],
    )
    for topic, partitions in ((by_number, 2), (assigned, 3)):
        result = create(client, topic, version)
        assert result.error_code == ErrorCode.NONE
        assert len(describe(client, topic.name).partitions) == partitions
        again = create(client, topic, version)
        assert again.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        if version >= 5:
            assert (result.num_partitions, result.replication_factor) == (partitions, 1)


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (CreatableTopic(name="bad name", num_partitions=1, replication_factor=1), 17),
        (CreatableTopic(name="none", num_partitions=0, replication_factor=1), 37),
        (CreatableTopic(name="none", num_partitions=1, replication_factor=2), 38),
        (CreatableTopic(name="none", num_partitions=1, replication_factor=0), 38),
        (
            CreatableTopic(
                name="none",
                num_partitions=1,
                replication_factor=1,
                assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[0])],
            ),
            42,
        ),
        (
            CreatableTopic(
                name="none",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[CreatableReplicaAssignment(partition_index=1, broker_ids=[0])],
            ),
            39,
        ),
        (
            CreatableTopic(
                name="none",
                num_partitions=1,
                replication_factor=1,
                configs=[CreatableTopicConfig(name="no.such", value="1")],
            ),
            40,
        ),
        (
            CreatableTopic(
                name="none",
                num_partitions=1,
                replication_factor=1,
                configs=[CreatableTopicConfig(name="segment.bytes", value="few")],
            ),
            40,
        ),
    ],
)
def test_create_topic_refuses(client: RawClient, topic: CreatableTopic, code: int) -> None:
    result = create(client, topic)
    assert result.error_code == code
    assert result.error_message
    assert (result.num_partitions, result.configs) == (-1, [])


def test_create_topic_that_collides_or_is_named_twice(client: RawClient) -> None:
    first = CreatableTopic(name="a.b", num_partitions=1, replication_factor=1)
    assert create(client, first).error_code == ErrorCode.NONE
    second = CreatableTopic(name="a_b", num_partitions=1, replication_factor=1)
    assert create(client, second).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    twice = CreatableTopic(name="twice", num_partitions=1, replication_factor=1)
    response = client.ask(CreateTopicsRequest(topics=[twice, twice], timeout_ms=1000), 5)
    assert [one.error_code for one in response.topics] == [ErrorCode.INVALID_REQUEST]


def test_validate_only_creates_nothing(client: RawClient) -> None:
    topic = CreatableTopic(name="checked", num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=1000, validate_only=True)
    assert client.ask(request, 5).topics[0].error_code == ErrorCode.NONE
    described = describe(client, "checked", allow_auto_topic_creation=False)
    assert described.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_create_without_time_to_wait_reports_a_time_out(client: RawClient) -> None:
    topic = CreatableTopic(name="hasty", num_partitions=1, replication_factor=1)
    assert create(client, topic, timeout_ms=0).error_code == ErrorCode.REQUEST_TIMED_OUT


def test_created_topic_returns_its_settings_with_their_source(client: RawClient) -> None:
    topic = CreatableTopic(
        name="configured",
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name="cleanup.policy", value="compact")],
    )
    result = create(client, topic)
    configs = {one.name: (one.value, one.config_source) for one in result.configs or ()}
    assert configs["cleanup.policy"] == ("compact", 1)
    assert configs["segment.bytes"] == ("100000", 4)
    assert configs["retention.ms"] == ("604800000", 5)
    assert configs["min.cleanable.dirty.ratio"] == ("0.5", 5)
    assert len(configs) == 26


# --- Produce and Fetch -----------------------------------------------------------------------


@pytest.mark.parametrize("version", range(9))
def test_produce_assigns_offsets_in_order(client: RawClient, version: int) -> None:
    topic = new_topic(client)
    for number in range(3):
        result = produce(client, topic, make_batch(b"a", b"b"), version=version, acks=1)
        assert (result.error_code, result.base_offset) == (ErrorCode.NONE, 2 * number)
        assert result.log_append_time_ms == -1
        assert result.log_start_offset == (0 if version >= 5 else -1)


@pytest.mark.parametrize("version", range(4, 12))
def test_fetch_returns_what_was_produced(client: RawClient, version: int) -> None:
    topic = new_topic(client)
    produce(client, topic, make_batch(b"first", b"second"))
    produce(client, topic, make_batch(b"third", codec=Codec.GZIP))
    data = fetch(client, topic, 0, version=version)
    assert data.error_code == ErrorCode.NONE
    assert values(data) == [b"first", b"second", b"third"]
    assert (data.high_watermark, data.last_stable_offset) == (3, 3)


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_old_clients_get_the_format_that_they_know(
    client: RawClient, version: int, codec: Codec
) -> None:
    topic = new_topic(client)
    produce(client, topic, make_batch(b"first", b"second", codec=codec))
    produce(client, topic, make_batch(b"third", codec=codec))
    data = fetch(client, topic, 0, version=version)
    assert isinstance(data.records, memoryview)
    magic = 0 if version <= 1 else 1
    assert {batch.header.magic for batch in iter_batches(data.records)} == {magic}
    records = read_records(data.records)
    assert [record.value for record in records] == [b"first", b"second", b"third"]
    assert [record.offset for record in records] == [0, 1, 2]
    timestamp = -1 if magic == 0 else TIMESTAMP
    assert records[0].timestamp == timestamp
    if codec is Codec.NONE:
        inside = fetch(client, topic, 1, version=version)
        assert values(inside) == [b"second", b"third"]


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_are_stored_in_the_topics_format(
    client: RawClient, version: int, magic: int
) -> None:
    topic = new_topic(client)
    messages = make_messages(magic, b"first", b"second", timestamp=TIMESTAMP)
    assert produce(client, topic, messages, version=version).base_offset == 0
    data = fetch(client, topic, 0)
    assert isinstance(data.records, memoryview)
    assert {batch.header.magic for batch in iter_batches(data.records)} == {2}
    assert values(data) == [b"first", b"second"]
    assert read_records(data.records)[0].timestamp == (-1 if magic == 0 else TIMESTAMP)


@pytest.mark.parametrize("magic", [0, 1])
def test_topic_of_an_older_format_keeps_it(client: RawClient, magic: int) -> None:
    version = {0: "0.9.0", 1: "0.10.0"}[magic]
    topic = new_topic(client, message_format_version=version)
    assert produce(client, topic, make_batch(b"new", b"client")).base_offset == 0
    data = fetch(client, topic, 0)
    assert isinstance(data.records, memoryview)
    assert {batch.header.magic for batch in iter_batches(data.records)} == {magic}
    assert values(data) == [b"new", b"client"]


def test_down_conversion_can_be_switched_off(client: RawClient) -> None:
    topic = new_topic(client, message_downconversion_enable="false")
    produce(client, topic, make_batch(b"x"))
    assert fetch(client, topic, 0, version=3).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert values(fetch(client, topic, 0, version=4)) == [b"x"]


def test_zstd_is_kept_from_clients_that_do_not_know_it(client: RawClient) -> None:
    topic = new_topic(client, compression_type="zstd")
    produce(client, topic, make_batch(b"x"))
    refused = fetch(client, topic, 0, version=9)
    assert refused.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert values(fetch(client, topic, 0, version=10)) == [b"x"]


@pytest.mark.parametrize("version", range(3))
def test_hard_limits_of_old_fetches_cut_even_the_first_message(
    client: RawClient, version: int
) -> None:
    topic = new_topic(client, message_format_version="0.9.0")
    produce(client, topic, make_batch(b"x" * 1000))
    data = fetch(client, topic, 0, version=version, partition_max_bytes=100)
    assert isinstance(data.records, memoryview)
    assert len(data.records) == 100
    assert values(data) == []


def test_fetch_inside_a_batch_returns_that_batch(client: RawClient) -> None:
    topic = new_topic(client)
    produce(client, topic, make_batch(b"0", b"1"))
    produce(client, topic, make_batch(b"2", b"3"))
    assert values(fetch(client, topic, 3)) == [b"2", b"3"]


def test_fetch_at_the_end_is_empty_and_past_it_out_of_range(client: RawClient) -> None:
    topic = new_topic(client)
    produce(client, topic, make_batch(b"only"))
    at_end = fetch(client, topic, 1)
    assert (at_end.error_code, values(at_end)) == (ErrorCode.NONE, [])
    for offset in (2, -1):
        past = fetch(client, topic, offset)
        assert (past.error_code, past.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_fetch_returns_at_least_one_batch_and_no_more_than_asked(client: RawClient) -> None:
    topic = new_topic(client)
    for _ in range(4):
        produce(client, topic, make_batch(b"x" * 1000))
    assert values(fetch(client, topic, 0, max_bytes=1)) == [b"x" * 1000]
    assert values(fetch(client, topic, 0, partition_max_bytes=1)) == [b"x" * 1000]
    assert values(fetch(client, topic, 0, partition_max_bytes=2500)) == [b"x" * 1000] * 2


def test_fetch_reads_over_segments(client: RawClient) -> None:
    topic = new_topic(client, segment_bytes="2000")
    expected = [b"%d" % number * 400 for number in range(10)]
    for value in expected:
        produce(client, topic, make_batch(value))
    found: list[bytes | None] = []
    while len(found) < len(expected):
        found += values(fetch(client, topic, len(found)))
    assert found == expected


def test_fetch_waits_for_min_bytes_until_they_come(
    broker: BrokerProcess, client: RawClient
) -> None:
    topic = new_topic(client)
    empty = fetch(client, topic, 0, max_wait_ms=50)
    assert (empty.error_code, values(empty)) == (ErrorCode.NONE, [])
    with RawClient(broker.port) as producer:
        produce(producer, topic, make_batch(b"x" * 100))
        little = fetch(client, topic, 0, max_wait_ms=50, min_bytes=10_000)
        assert values(little) == [b"x" * 100]


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (make_batch(b"x")[:-1], ErrorCode.INVALID_RECORD),
        (make_batch(b"x")[:-1] + b"y", ErrorCode.CORRUPT_MESSAGE),
        (make_batch(b"x") * 2, ErrorCode.INVALID_RECORD),
        (make_batch(b"x" * 2_000_000), ErrorCode.MESSAGE_TOO_LARGE),
    ],
    ids=["nothing", "cut", "wrong crc", "two batches", "too large"],
)
def test_produce_refuses_and_leaves_the_log_untouched(
    client: RawClient, records: bytes, code: ErrorCode
) -> None:
    topic = new_topic(client, segment_bytes="10000000")
    assert produce(client, topic, make_batch(b"before")).error_code == ErrorCode.NONE
    assert produce(client, topic, records).error_code == code
    assert produce(client, topic, make_batch(b"after")).base_offset == 1
    assert values(fetch(client, topic, 0)) == [b"before", b"after"]


def test_produce_to_what_is_not_there(client: RawClient) -> None:
    unknown = produce(client, "nowhere", make_batch(b"x"))
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    topic = new_topic(client)
    missing = produce(client, topic, make_batch(b"x"), partition=7)
    assert (missing.error_code, missing.base_offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_produce_with_odd_acks_is_refused(client: RawClient) -> None:
    topic = new_topic(client)
    assert produce(client, topic, make_batch(b"x"), acks=2).error_code == (
        ErrorCode.INVALID_REQUIRED_ACKS
    )


@pytest.mark.parametrize("version", range(3, 7))
def test_zstd_needs_a_client_that_knows_it(client: RawClient, version: int) -> None:
    topic = new_topic(client)
    result = produce(client, topic, make_batch(b"x", codec=Codec.ZSTD), version=version)
    assert result.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_produce_without_acks_gets_no_answer_but_an_error_closes(
    broker: BrokerProcess, client: RawClient
) -> None:
    topic = new_topic(client)
    with RawClient(broker.port) as silent:
        silent.tell(_silent_produce(topic, make_batch(b"quiet")), 8)
        assert values(fetch(silent, topic, 0, max_wait_ms=5000)) == [b"quiet"]
        silent.tell(_silent_produce("nowhere", make_batch(b"lost")), 8)
        with pytest.raises(ConnectionEnded):
            fetch(silent, topic, 0)


def _silent_produce(topic: str, batch: bytes) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=memoryview(bytearray(batch)))
    return ProduceRequest(acks=0, topic_data=[TopicProduceData(name=topic, partition_data=[data])])


def test_fetch_of_an_unknown_session_is_refused(client: RawClient) -> None:
    request = FetchRequest(session_id=42, session_epoch=3)
    assert client.ask(request, 11).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


# --- ListOffsets and FindCoordinator ---------------------------------------------------------


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


@pytest.mark.parametrize("version", range(4))
def test_there_is_no_coordinator_yet(client: RawClient, version: int) -> None:
    response = client.ask(FindCoordinatorRequest(key="group"), version)
    assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert response.node_id == -1
