"""Records for tests: hypothesis strategies, and the building of batches from plain records."""

from collections.abc import Iterable

from hypothesis import strategies as st

from storage.records import BatchBuilder, Codec, Record, iter_batches, iter_records
from storage.records.layout import Buffer
from storage.records.legacy_builder import LegacyBuilder

LEGACY_CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]

optional_bytes = st.none() | st.binary(max_size=200)
header_lists = st.lists(st.tuples(st.text(max_size=20), optional_bytes), max_size=4).map(tuple)
timestamps = st.just(-1) | st.integers(0, 2**45)
codecs = st.sampled_from(Codec)
legacy_codecs = st.sampled_from(LEGACY_CODECS)


@st.composite
def record_lists(draw: st.DrawFn, *, with_headers: bool = True) -> list[Record]:
    """One to twenty records at consecutive offsets from a random one on."""
    base_offset = draw(st.integers(0, 2**60))
    count = draw(st.integers(1, 20))
    headers = header_lists if with_headers else st.just(())
    return [
        Record(
            base_offset + index,
            draw(timestamps),
            draw(optional_bytes),
            draw(optional_bytes),
            draw(headers),
        )
        for index in range(count)
    ]


def batch_of(records: list[Record], codec: Codec = Codec.NONE) -> bytearray:
    builder = BatchBuilder(base_offset=records[0].offset, codec=codec)
    for record in records:
        builder.append(record.timestamp, record.key, record.value, record.headers, record.offset)
    return builder.build()


def messages_of(records: list[Record], magic: int, codec: Codec = Codec.NONE) -> bytearray:
    builder = LegacyBuilder(magic, base_offset=records[0].offset, codec=codec)
    for record in records:
        builder.append(record.timestamp, record.key, record.value, record.offset)
    return builder.build()


def all_records(data: Buffer) -> list[Record]:
    return [record for batch in iter_batches(data) for record in iter_records(batch)]


def numbered(values: Iterable[bytes], first_offset: int = 0) -> list[Record]:
    """Records with a key, a value each and one-second steps between their timestamps."""
    return [
        Record(first_offset + index, 1_000 * index, b"key", value)
        for index, value in enumerate(values)
    ]
