import pytest
from hypothesis import given
from hypothesis import strategies as st

from network.frame import GROWTH_STEP, SIZE_PREFIX, FrameReader, InvalidFrameSize

MAX_SIZE = 8 << 20


def framed(payload: bytes) -> bytes:
    return SIZE_PREFIX.pack(len(payload)) + payload


def feed_directly(reader: FrameReader, data: bytes) -> None:
    """Deliver bytes as a socket does: into the reader's own buffer where it offers one."""
    position = 0
    while position < len(data):
        target = reader.direct_target()
        if target is None:
            chunk = data[position : position + 10]
            reader.feed(memoryview(chunk))
            position += len(chunk)
        else:
            count = min(len(target), len(data) - position)
            target[:count] = data[position : position + count]
            reader.received_directly(count)
            position += count


@given(payloads=st.lists(st.binary(max_size=40), max_size=8), cuts=st.lists(st.integers(1, 50)))
def test_frames_come_out_whole_however_the_stream_is_cut(
    payloads: list[bytes], cuts: list[int]
) -> None:
    reader = FrameReader(MAX_SIZE)
    stream = b"".join(map(framed, payloads))
    position = 0
    for cut in [*cuts, len(stream)]:
        reader.feed(memoryview(stream[position : position + cut]))
        position += cut
    assert list(reader.frames) == payloads
    assert reader.buffered_bytes == sum(map(len, payloads))


def test_large_frame_is_received_into_its_own_buffer() -> None:
    reader = FrameReader(MAX_SIZE)
    payload = bytes(range(256)) * (3 * GROWTH_STEP // 256) + b"tail"
    feed_directly(reader, framed(payload) + framed(b"next"))
    assert list(reader.frames) == [payload, b"next"]
    assert reader.direct_target() is None


@pytest.mark.parametrize("size", [-1, -(2**31), MAX_SIZE + 1, 2**31 - 1])
def test_forbidden_size_is_refused_on_the_four_length_bytes(size: int) -> None:
    reader = FrameReader(MAX_SIZE)
    with pytest.raises(InvalidFrameSize, match=str(size)):
        reader.feed(memoryview(SIZE_PREFIX.pack(size)))


def test_announced_size_is_not_allocated_before_bytes_arrive() -> None:
    reader = FrameReader(MAX_SIZE)
    reader.feed(memoryview(SIZE_PREFIX.pack(MAX_SIZE) + b"x"))
    target = reader.direct_target()
    assert target is not None
    assert len(target) < GROWTH_STEP


def test_scratch_buffer_may_be_reused_after_feeding() -> None:
    reader = FrameReader(MAX_SIZE)
    scratch = bytearray(framed(b"first") + framed(b"second")[:7])
    reader.feed(memoryview(scratch))
    scratch[:] = bytes(len(scratch))
    reader.feed(memoryview(b"cond"))
    assert [bytes(frame[:2]) for frame in reader.frames] == [b"fi", b"se"]
