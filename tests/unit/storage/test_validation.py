"""What a leader and a follower accept, which offsets they give, and what they refuse and why."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.append_info import AppendOrigin
from storage.errors import OffsetsOutOfOrderError
from storage.records import (
    BatchBuilder,
    Codec,
    ProducerInfo,
    Record,
    TimestampType,
    build_end_txn_batch,
    is_intact,
    iter_batches,
    parse_header,
)
from storage.records.errors import (
    CorruptRecordError,
    DecompressionError,
    InvalidRecordError,
    InvalidTimestampError,
    RecordDataError,
    RecordTooLargeError,
    UnsupportedCodecError,
)
from storage.records.layout import (
    ATTRIBUTES_FIELD,
    ATTRIBUTES_POSITION,
    BATCH_HEADER_SIZE,
    LAST_OFFSET_DELTA_POSITION,
    LENGTH_FIELD,
    MAGIC_POSITION,
    MAX_TIMESTAMP_POSITION,
    TIMESTAMP_FIELD,
    set_base_offset,
)
from storage.validation import (
    RecordRules,
    validate_for_follower,
    validate_for_leader,
)
from tests.unit.storage.leading import MARKER, NOW, lead, offsets, resealed, three
from tests.unit.storage.records.samples import (
    all_records,
    batch_of,
    codecs,
    messages_of,
    numbered,
    record_lists,
)

RECORD_COUNT_POSITION = 57

PLAIN = RecordRules()
FULL = RecordRules(validate_records=True)
COMPACTED = RecordRules(is_compacted=True)
LOG_APPEND_TIME = RecordRules(timestamp_type=TimestampType.LOG_APPEND_TIME)


class TestOrdinaryBatches:
    @pytest.mark.parametrize("codec", Codec)
    @pytest.mark.parametrize("rules", [PLAIN, FULL, COMPACTED])
    def test_offsets_and_leader_epoch_are_patched_in_place(
        self, codec: Codec, rules: RecordRules
    ) -> None:
        payload = three(codec)
        validated = validate_for_leader(payload, rules, 100, 7, NOW)
        assert validated.data is payload
        assert (validated.first_offset, validated.last_offset) == (100, 102)
        assert (validated.max_timestamp, validated.log_append_time) == (2_000, -1)
        assert validated.offset_of_max_timestamp == 102
        assert validated.converted_records == 0
        assert validated.headers == (parse_header(payload),)
        assert validated.headers[0].partition_leader_epoch == 7
        assert offsets(payload) == [100, 101, 102]
        assert all(is_intact(batch) for batch in iter_batches(payload))

    def test_a_batch_is_not_opened_when_no_setting_asks_for_it(self) -> None:
        payload = three(Codec.GZIP)
        payload[BATCH_HEADER_SIZE:] = b"not gzip at all"
        LENGTH_FIELD.pack_into(payload, 8, len(payload) - 12)
        resealed(payload)
        assert lead(payload).last_offset == 102
        for rules in (FULL, COMPACTED):
            with pytest.raises(DecompressionError):
                lead(payload, rules)

    def test_a_memoryview_into_a_larger_buffer_is_patched_there(self) -> None:
        request = bytearray(b"head") + three() + b"tail"
        validate_for_leader(memoryview(request)[4:-4], PLAIN, 100, 7, NOW)
        assert request[:4] == b"head"
        assert request[-4:] == b"tail"
        assert offsets(request[4:-4]) == [100, 101, 102]

    def test_producer_fields_are_reported_for_the_producer_state(self) -> None:
        builder = BatchBuilder(producer=ProducerInfo(9, 2, 40, is_transactional=True))
        builder.append(0, b"k", b"v")
        (header,) = lead(builder.build()).headers
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 2, 40)
        assert header.last_sequence == 40
        assert header.is_transactional

    def test_log_append_time_replaces_timestamps_type_and_crc(self) -> None:
        validated = lead(three(Codec.LZ4), LOG_APPEND_TIME)
        assert (validated.log_append_time, validated.max_timestamp) == (NOW, NOW)
        (batch,) = iter_batches(validated.data)
        assert is_intact(batch)
        assert batch.header == validated.headers[0]
        assert batch.header.timestamp_type is TimestampType.LOG_APPEND_TIME
        assert {record.timestamp for record in all_records(validated.data)} == {NOW}

    def test_a_wrong_max_timestamp_is_corrected_when_records_are_looked_at(self) -> None:
        payload = three()
        TIMESTAMP_FIELD.pack_into(payload, MAX_TIMESTAMP_POSITION, 99)
        validated = lead(resealed(payload), FULL)
        assert validated.max_timestamp == 2_000
        (batch,) = iter_batches(validated.data)
        assert is_intact(batch)
        assert batch.header.max_timestamp == 2_000

    def test_offset_deltas_with_gaps_are_renumbered_when_records_are_looked_at(self) -> None:
        builder = BatchBuilder(codec=Codec.ZSTD, producer=ProducerInfo(9, 2, 40))
        builder.append(0, b"k", b"v")
        builder.append(0, b"k", b"v", offset=5)
        payload = builder.build()
        LENGTH_FIELD.pack_into(payload, LAST_OFFSET_DELTA_POSITION, 1)
        validated = lead(resealed(payload), FULL)
        assert offsets(validated.data) == [100, 101]
        assert validated.converted_records == 2
        assert validated.headers[0].base_sequence == 40
        assert validated.headers[0].partition_leader_epoch == 7

    def test_bytes_of_a_cut_off_batch_behind_the_batch_are_left_out(self) -> None:
        payload = three()
        validated = lead(payload + payload[:40])
        assert len(validated.data) == len(payload)
        assert offsets(validated.data) == [100, 101, 102]


class TestRefusedBatches:
    @pytest.mark.parametrize("rules", [PLAIN, FULL])
    @pytest.mark.parametrize("payload", [b"", b"short", bytes(three())[:-1], bytes(three())[:61]])
    def test_no_complete_batch_is_an_invalid_record(
        self, payload: bytes, rules: RecordRules
    ) -> None:
        with pytest.raises(InvalidRecordError, match="no complete"):
            lead(payload, rules)

    def test_a_second_batch_is_refused(self) -> None:
        with pytest.raises(InvalidRecordError, match="Exactly one batch"):
            lead(three() + three())

    def test_a_wrong_crc_is_corrupt(self) -> None:
        payload = three()
        payload[-1] ^= 1
        with pytest.raises(CorruptRecordError, match="CRC"):
            lead(payload)

    def test_an_unknown_magic_is_corrupt(self) -> None:
        payload = three()
        payload[MAGIC_POSITION] = 3
        with pytest.raises(CorruptRecordError, match="magic 3"):
            lead(payload)

    @pytest.mark.parametrize("length", [-1, 0, 48])
    def test_an_impossible_length_is_corrupt(self, length: int) -> None:
        payload = three()
        LENGTH_FIELD.pack_into(payload, 8, length)
        with pytest.raises(CorruptRecordError, match="length"):
            lead(payload)

    def test_max_message_bytes_is_the_largest_size_accepted(self) -> None:
        payload = three()
        assert lead(payload, RecordRules(max_message_bytes=len(payload)))
        with pytest.raises(RecordTooLargeError, match=str(len(payload))):
            lead(payload, RecordRules(max_message_bytes=len(payload) - 1))

    def test_too_large_is_told_before_the_crc_is_computed(self) -> None:
        payload = three()
        payload[-1] ^= 1
        with pytest.raises(RecordTooLargeError):
            lead(payload, RecordRules(max_message_bytes=80))

    def test_a_base_offset_other_than_zero_is_refused_from_clients(self) -> None:
        payload = three()
        set_base_offset(payload, 1)
        with pytest.raises(InvalidRecordError, match="base offset is 1"):
            lead(payload)
        assert lead(payload, origin=AppendOrigin.COORDINATOR).first_offset == 100

    @pytest.mark.parametrize(
        ("count", "delta"), [(0, 2), (-1, 2), (2, 2), (3, 3), (3, -1), (0, -1)]
    )
    def test_record_count_and_last_offset_delta_must_agree(self, count: int, delta: int) -> None:
        payload = three()
        LENGTH_FIELD.pack_into(payload, RECORD_COUNT_POSITION, count)
        LENGTH_FIELD.pack_into(payload, LAST_OFFSET_DELTA_POSITION, delta)
        with pytest.raises(InvalidRecordError, match=f"batch of {count} records"):
            lead(resealed(payload))

    def test_a_record_count_that_the_records_contradict_is_found_on_full_validation(self) -> None:
        payload = three()
        LENGTH_FIELD.pack_into(payload, RECORD_COUNT_POSITION, 2)
        LENGTH_FIELD.pack_into(payload, LAST_OFFSET_DELTA_POSITION, 1)
        with pytest.raises(InvalidRecordError, match="bytes are left"):
            lead(resealed(payload), FULL)

    def test_a_control_batch_is_refused_from_clients_only(self) -> None:
        marker = build_end_txn_batch(NOW, 9, 2, MARKER)
        with pytest.raises(InvalidRecordError, match="control"):
            lead(marker)
        validated = lead(marker, origin=AppendOrigin.COORDINATOR)
        assert validated.headers[0].is_control
        assert validated.first_offset == validated.last_offset == 100

    def test_a_producer_id_needs_a_sequence(self) -> None:
        builder = BatchBuilder(producer=ProducerInfo(9, 2, -1))
        builder.append(0, b"k", b"v")
        with pytest.raises(InvalidRecordError, match="sequence -1"):
            lead(builder.build())
        assert lead(builder.build(), origin=AppendOrigin.COORDINATOR).last_offset == 100

    @pytest.mark.parametrize("number", [5, 6, 7])
    def test_an_unknown_codec_is_refused(self, number: int) -> None:
        payload = three()
        ATTRIBUTES_FIELD.pack_into(payload, ATTRIBUTES_POSITION, number)
        with pytest.raises(UnsupportedCodecError, match=str(number)):
            lead(resealed(payload))

    def test_keyless_records_on_a_compacted_topic_are_named_one_by_one(self) -> None:
        builder = BatchBuilder()
        for key in (b"k", None, b"", None):
            builder.append(0, key, b"v")
        with pytest.raises(InvalidRecordError) as refused:
            lead(builder.build(), COMPACTED)
        assert not isinstance(refused.value, InvalidTimestampError)
        assert [fault.batch_index for fault in refused.value.faults] == [1, 3]
        assert "key" in refused.value.faults[0].message

    def test_timestamps_too_far_from_now_are_named_one_by_one(self) -> None:
        rules = RecordRules(timestamp_difference_max_ms=1000)
        builder = BatchBuilder()
        for timestamp in (NOW - 1000, NOW - 1001, -1, NOW + 1000, NOW + 1001):
            builder.append(timestamp, b"k", b"v")
        with pytest.raises(InvalidTimestampError) as refused:
            lead(builder.build(), rules)
        assert [fault.batch_index for fault in refused.value.faults] == [1, 4]

    def test_one_bad_timestamp_makes_the_refusal_one_of_timestamps(self) -> None:
        rules = RecordRules(timestamp_difference_max_ms=1000, is_compacted=True)
        builder = BatchBuilder()
        builder.append(NOW, None, b"v")
        builder.append(0, b"k", b"v")
        with pytest.raises(InvalidTimestampError) as refused:
            lead(builder.build(), rules)
        assert [fault.batch_index for fault in refused.value.faults] == [0, 1]

    def test_the_difference_does_not_matter_under_log_append_time(self) -> None:
        rules = RecordRules(
            timestamp_type=TimestampType.LOG_APPEND_TIME, timestamp_difference_max_ms=1000
        )
        assert lead(three(), rules).log_append_time == NOW

    @pytest.mark.parametrize("rules", [PLAIN, LOG_APPEND_TIME])
    def test_producers_may_not_set_log_append_time(self, rules: RecordRules) -> None:
        builder = BatchBuilder(log_append_time=NOW)
        builder.append(0, b"k", b"v")
        builder.append(0, b"k", b"v")
        with pytest.raises(InvalidTimestampError, match="timestamps") as refused:
            lead(builder.build(), rules)
        assert [fault.batch_index for fault in refused.value.faults] == [0, 1]

    @settings(deadline=None, max_examples=100)
    @given(record_lists(), codecs, st.data())
    def test_a_refused_payload_is_left_as_it_was(
        self, records: list[Record], codec: Codec, data: st.DataObject
    ) -> None:
        payload = batch_of(records, codec)
        set_base_offset(payload, 0)
        position = data.draw(st.integers(0, len(payload) - 1))
        payload[position] ^= 1 << data.draw(st.integers(0, 7))
        if data.draw(st.booleans()):
            resealed(payload)
        before = bytes(payload)
        try:
            validate_for_leader(payload, FULL, 100, 7, NOW)
        except RecordDataError:
            assert payload == before


class TestFollower:
    def test_batches_are_taken_as_the_leader_numbered_them(self) -> None:
        payload = bytes(batch_of(numbered([b"a", b"b"], 50)) + batch_of(numbered([b"c"], 60)))
        validated = validate_for_follower(payload, 10_000)
        assert validated.data is payload
        assert (validated.first_offset, validated.last_offset) == (50, 60)
        assert (validated.max_timestamp, validated.offset_of_max_timestamp) == (1_000, 51)
        assert [header.base_offset for header in validated.headers] == [50, 60]

    def test_control_batches_and_old_formats_are_taken(self) -> None:
        marker = build_end_txn_batch(NOW, 9, 2, MARKER)
        set_base_offset(marker, 70)
        payload = messages_of(numbered([b"a", b"b"], 50), 1, Codec.GZIP) + marker
        validated = validate_for_follower(payload, 10_000)
        assert (validated.first_offset, validated.last_offset) == (51, 70)

    def test_a_last_batch_that_is_cut_off_is_left_out(self) -> None:
        whole, cut = batch_of(numbered([b"a"], 50)), batch_of(numbered([b"b"], 51))[:-1]
        validated = validate_for_follower(whole + cut, 10_000)
        assert validated.data == whole
        assert len(validated.headers) == 1

    @pytest.mark.parametrize("payload", [b"", bytes(three())[:-1]])
    def test_there_may_be_nothing_to_append(self, payload: bytes) -> None:
        validated = validate_for_follower(payload, 10_000)
        assert validated.headers == ()
        assert len(validated.data) == 0

    def test_a_wrong_crc_is_corrupt(self) -> None:
        payload = three()
        payload[-1] ^= 1
        with pytest.raises(CorruptRecordError):
            validate_for_follower(payload, 10_000)

    def test_offsets_that_do_not_grow_are_refused(self) -> None:
        batch = batch_of(numbered([b"a"], 50))
        with pytest.raises(OffsetsOutOfOrderError, match="50"):
            validate_for_follower(batch + batch, 10_000)

    def test_a_batch_beyond_the_largest_size_is_refused(self) -> None:
        with pytest.raises(RecordTooLargeError):
            validate_for_follower(three(), 80)
