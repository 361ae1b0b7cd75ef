"""Frames of Zstandard that do not say what they expand to, as librdkafka writes them."""

import numpy as np
import pytest
import zstandard

from analytics.decoding.header_kernel import HEADER_COLUMNS, Header
from analytics.decoding.record_kernel import Region
from analytics.decoding.sections import Scratch
from storage.records.errors import RecordDataError
from storage.records.layout import BATCH_HEADER_SIZE, MAGIC_2, Codec


def opened(scratch: Scratch, section: bytes) -> bytes:
    header = np.zeros(HEADER_COLUMNS, np.int64)
    header[Header.MAGIC] = MAGIC_2
    header[Header.ATTRIBUTES] = Codec.ZSTD
    region = scratch.open(header, memoryview(bytes(BATCH_HEADER_SIZE) + section))[0]
    return bytes(scratch.data[region[Region.START] : region[Region.END]])


def frame(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=False).compress(data)


@pytest.mark.parametrize("repeats", [1, 5, 12, 40, 3000])
def test_frames_of_any_expansion_are_opened_whatever_came_before(repeats: int) -> None:
    scratch = Scratch()
    seed = np.random.default_rng(1).bytes(1000)
    for count in (1, repeats, 1, repeats):
        assert opened(scratch, frame(seed * count)) == seed * count


def test_several_frames_in_a_row_are_all_opened() -> None:
    assert opened(Scratch(), frame(b"a" * 100) + frame(b"b" * 100)) == b"a" * 100 + b"b" * 100


def test_a_frame_that_is_cut_off_is_an_error() -> None:
    whole = frame(np.random.default_rng(1).bytes(5000))
    with pytest.raises(RecordDataError):
        opened(Scratch(), whole[:-100])
