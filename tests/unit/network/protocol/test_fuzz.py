"""Mutated frames at every decoder: whatever arrives, only a ProtocolError comes out.

The frames are sound ones with bytes changed, cut out, inserted, repeated, or their numbers
replaced by the worst that a length or a count can be.
"""

import tracemalloc
from collections.abc import Iterator
from random import Random

import pytest

from network.protocol import ApiKey, ProtocolError, decode_request, decode_request_header
from network.protocol.schema import ApiMessage, Request
from tests.unit.network.protocol.frames import decode_frame, encode_frame
from tests.unit.network.protocol.samples import Sampler, every_message

FRAMES = 200_000
MOST_BYTES_PER_FRAME_BYTE = 400
SPARE_BYTES = 1 << 20

NASTY = (
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\xff",
    b"\x7f\xff",
    b"\x80\x00",
    b"\x00",
    b"\xff",
    b"\x00\x00\x00\x00",
    b"\xc3\x28",
)


def sound_frames() -> Iterator[tuple[type[ApiMessage], int, bytes]]:
    for message, version in every_message():
        for seed in range(3):
            sent = Sampler(seed, longest_array=2).message(message, version)
            yield message, version, encode_frame(sent, version)[4:]


def mutated(frame: bytes, random: Random) -> bytearray:
    """A frame in which one to three things are wrong; requests keep their key and version."""
    made = bytearray(frame)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        at = random.randrange(4, max(5, len(made)))
        match random.randrange(6):
            case 0:
                made[at : at + 1] = random.randbytes(1)
            case 1:
                del made[at:]
            case 2:
                made += random.randbytes(random.randrange(1, 20))
            case 3:
                nasty = random.choice(NASTY)
                made[at : at + len(nasty)] = nasty
            case 4:
                made[at:at] = random.choice(NASTY)
            case 5:
                del made[at : at + random.randrange(1, 9)]
    return made


def decode_any_request(frame: memoryview) -> Request:
    header, pos = decode_request_header(frame)
    return decode_request(header.api_key, header.api_version, frame, pos)


def test_mutated_frames_raise_nothing_but_protocol_errors() -> None:
    random = Random(20)
    frames = list(sound_frames())
    refused = 0
    for number in range(FRAMES):
        message, version, frame = frames[number % len(frames)]
        try:
            decode_frame(message, version, memoryview(mutated(frame, random)))
        except ProtocolError:
            refused += 1
    assert refused > FRAMES / 2


def test_frames_of_random_bytes_raise_nothing_but_protocol_errors() -> None:
    random = Random(21)
    for api in ApiKey:
        for size in range(200):
            frame = api.to_bytes(2, "big") + random.randbytes(size)
            with pytest.raises(ProtocolError):
                decode_any_request(memoryview(frame))


def test_mutated_frames_take_memory_in_proportion_to_their_size() -> None:
    random = Random(22)
    frames = list(sound_frames())
    tracemalloc.start()
    try:
        for number in range(0, len(frames) * 2, 3):
            message, version, frame = frames[number % len(frames)]
            made = memoryview(mutated(frame, random))
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            with_error = None
            try:
                decode_frame(message, version, made)
            except ProtocolError as error:
                with_error = error
            _, peak = tracemalloc.get_traced_memory()
            assert peak - before < SPARE_BYTES + MOST_BYTES_PER_FRAME_BYTE * len(made), with_error
    finally:
        tracemalloc.stop()
