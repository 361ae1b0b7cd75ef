"""Records that a leader must rewrite for a topic's format or codec, and messages of old clients."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.append_info import AppendOrigin
from storage.records import (
    BatchBuilder,
    Codec,
    ProducerInfo,
    Record,
    TimestampType,
    build_end_txn_batch,
    is_intact,
    iter_batches,
)
from storage.records.compression import compress
from storage.records.errors import (
    CorruptRecordError,
    InvalidRecordError,
    RecordTooLargeError,
    UnsupportedCodecError,
    UnsupportedForMessageFormatError,
)
from storage.records.layout import (
    set_base_offset,
)
from storage.records.legacy import encode_message
from storage.validation import (
    RecordRules,
    validate_for_leader,
)
from tests.unit.storage.leading import MARKER, NOW, lead, offsets, three
from tests.unit.storage.records.samples import (
    all_records,
    batch_of,
    codecs,
    legacy_codecs,
    messages_of,
    numbered,
    record_lists,
)


class TestConversion:
    @settings(deadline=None, max_examples=100)
    @given(record_lists(with_headers=False), codecs, st.none() | codecs, st.sampled_from([0, 1, 2]))
    def test_records_are_stored_in_the_topics_format_and_codec(
        self, records: list[Record], source: Codec, target: Codec | None, magic: int
    ) -> None:
        payload = batch_of(records, source)
        set_base_offset(payload, 0)
        stored_codec = source if target is None else target
        rules = RecordRules(codec=target, magic=magic)
        if magic < 2 and stored_codec is Codec.ZSTD:
            with pytest.raises(UnsupportedCodecError):
                lead(payload, rules)
            return
        validated = lead(payload, rules)
        assert all_records(validated.data) == [
            record._replace(offset=100 + index, timestamp=record.timestamp if magic else -1)
            for index, record in enumerate(records)
        ]
        for batch in iter_batches(validated.data):
            assert is_intact(batch)
            assert batch.header.magic == magic
            assert batch.header.codec is stored_codec
        assert validated.last_offset == 99 + len(records)
        is_as_it_came = magic == 2 and stored_codec is source
        assert validated.converted_records == (0 if is_as_it_came else len(records))

    @settings(deadline=None, max_examples=100)
    @given(
        record_lists(with_headers=False),
        st.sampled_from([0, 1]),
        legacy_codecs,
        st.sampled_from([0, 1, 2]),
    )
    def test_messages_of_old_clients_are_stored_in_the_topics_format(
        self, records: list[Record], source_magic: int, codec: Codec, magic: int
    ) -> None:
        numbered_from_0 = [record._replace(offset=index) for index, record in enumerate(records)]
        payload = messages_of(numbered_from_0, source_magic, codec)
        validated = lead(payload, RecordRules(magic=magic))
        has_timestamps = source_magic == 1 and magic >= 1
        assert all_records(validated.data) == [
            record._replace(
                offset=100 + index, timestamp=record.timestamp if has_timestamps else -1
            )
            for index, record in enumerate(records)
        ]
        assert all(is_intact(batch) for batch in iter_batches(validated.data))
        assert validated.last_offset == 99 + len(records)

    def test_producer_fields_survive_recompression(self) -> None:
        builder = BatchBuilder(producer=ProducerInfo(9, 2, 40, is_transactional=True))
        builder.append(0, b"k", b"v")
        (header,) = lead(builder.build(), RecordRules(codec=Codec.GZIP)).headers
        assert header.codec is Codec.GZIP
        assert header.is_transactional
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 2, 40)

    def test_control_batches_are_not_recompressed(self) -> None:
        marker = build_end_txn_batch(NOW, 9, 2, MARKER)
        rules = RecordRules(codec=Codec.GZIP)
        (header,) = lead(marker, rules, AppendOrigin.COORDINATOR).headers
        assert header.codec is Codec.NONE
        assert header.is_control

    def test_the_size_limit_holds_for_what_recompression_makes(self) -> None:
        payload = batch_of(numbered([b"x" * 10_000]), Codec.GZIP)
        assert len(payload) < 500
        rules = RecordRules(codec=Codec.NONE, max_message_bytes=5_000)
        with pytest.raises(RecordTooLargeError):
            lead(payload, rules)

    @pytest.mark.parametrize("is_transactional", [True, False])
    def test_idempotent_records_cannot_be_stored_in_old_formats(
        self, is_transactional: bool
    ) -> None:
        builder = BatchBuilder(producer=ProducerInfo(9, 2, 40, is_transactional))
        builder.append(0, b"k", b"v")
        with pytest.raises(UnsupportedForMessageFormatError):
            lead(builder.build(), RecordRules(magic=1))

    def test_headers_cannot_be_stored_in_old_formats(self) -> None:
        builder = BatchBuilder()
        builder.append(0, b"k", b"v", [("h", b"x")])
        with pytest.raises(UnsupportedForMessageFormatError, match="headers"):
            lead(builder.build(), RecordRules(magic=1))

    def test_log_append_time_is_set_when_records_are_converted(self) -> None:
        rules = RecordRules(timestamp_type=TimestampType.LOG_APPEND_TIME, codec=Codec.GZIP, magic=1)
        validated = lead(three(), rules)
        assert (validated.log_append_time, validated.max_timestamp) == (NOW, NOW)
        assert {record.timestamp for record in all_records(validated.data)} == {NOW}


class TestOldFormats:
    RULES = RecordRules(magic=1)

    def test_messages_are_numbered_and_stamped_in_place(self) -> None:
        payload = messages_of(numbered([b"a", b"b"]), 1)
        rules = RecordRules(magic=1, timestamp_type=TimestampType.LOG_APPEND_TIME)
        validated = validate_for_leader(payload, rules, 100, 7, NOW)
        assert offsets(payload) == [100, 101]
        assert {record.timestamp for record in all_records(payload)} == {NOW}
        assert all(is_intact(batch) for batch in iter_batches(payload))
        assert (validated.max_timestamp, validated.offset_of_max_timestamp) == (NOW, 100)

    def test_the_offset_of_the_largest_timestamp_is_that_of_its_message(self) -> None:
        records = [Record(0, 5, b"k", b""), Record(1, 9, b"k", b""), Record(2, 7, b"k", b"")]
        validated = lead(messages_of(records, 1), self.RULES)
        assert (validated.max_timestamp, validated.offset_of_max_timestamp) == (9, 101)

    def test_a_wrapper_gets_the_last_offset_and_the_largest_timestamp(self) -> None:
        inner = b"".join(encode_message(1, index, 10 + index, b"k", b"v") for index in range(3))
        payload = encode_message(1, 2, 3, None, compress(Codec.GZIP, inner), Codec.GZIP)
        validated = lead(payload, self.RULES)
        (batch,) = iter_batches(validated.data)
        assert is_intact(batch)
        assert (batch.header.last_offset, batch.header.max_timestamp) == (102, 12)
        assert offsets(validated.data) == [100, 101, 102]
        assert validated.converted_records == 0

    def test_a_wrapper_with_wrong_inner_offsets_is_rewritten(self) -> None:
        inner = b"".join(encode_message(1, 0, 10, b"k", b"v") for _ in range(3))
        payload = encode_message(1, 0, 10, None, compress(Codec.GZIP, inner), Codec.GZIP)
        validated = lead(payload, self.RULES)
        assert offsets(validated.data) == [100, 101, 102]
        assert validated.converted_records == 3

    def test_a_wrapper_next_to_another_message_is_refused(self) -> None:
        wrapper = messages_of(numbered([b"a"]), 1, Codec.GZIP)
        with pytest.raises(InvalidRecordError, match="Exactly one"):
            lead(wrapper + messages_of(numbered([b"a"]), 1), self.RULES)

    def test_mixed_magics_are_refused(self) -> None:
        payload = messages_of(numbered([b"a"]), 1) + messages_of(numbered([b"a"]), 0)
        with pytest.raises(InvalidRecordError, match="mixed"):
            lead(payload, self.RULES)

    def test_mixed_magics_in_a_wrapper_are_refused(self) -> None:
        inner = encode_message(0, 0, 0, b"k", b"v")
        payload = encode_message(1, 0, 0, None, compress(Codec.GZIP, inner), Codec.GZIP)
        with pytest.raises(InvalidRecordError) as refused:
            lead(payload, self.RULES)
        assert "magic 0" in refused.value.faults[0].message

    def test_a_wrapper_in_a_wrapper_is_refused(self) -> None:
        inner = encode_message(1, 0, 0, None, b"", Codec.GZIP)
        payload = encode_message(1, 0, 0, None, compress(Codec.GZIP, inner), Codec.GZIP)
        with pytest.raises(InvalidRecordError) as refused:
            lead(payload, self.RULES)
        assert "compressed itself" in refused.value.faults[0].message

    def test_a_damaged_message_in_a_wrapper_is_corrupt(self) -> None:
        inner = bytearray(encode_message(1, 0, 0, b"k", b"v"))
        inner[-1] ^= 1
        payload = encode_message(1, 0, 0, None, compress(Codec.GZIP, bytes(inner)), Codec.GZIP)
        with pytest.raises(CorruptRecordError, match="wrapped message 0"):
            lead(payload, self.RULES)

    def test_keys_are_needed_on_compacted_topics(self) -> None:
        payload = messages_of([Record(0, 0, None, b"v")], 1, Codec.GZIP)
        with pytest.raises(InvalidRecordError) as refused:
            lead(payload, RecordRules(magic=1, is_compacted=True))
        assert refused.value.faults[0].batch_index == 0
