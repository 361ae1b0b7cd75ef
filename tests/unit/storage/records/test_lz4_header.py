"""The header checksum of lz4 frames, right and as the first clients wrote it."""

import lz4.frame
import pytest

from storage.records.lz4_header import lz4_header_end, patch_lz4_header_checksum, xxh32


@pytest.mark.parametrize(
    ("data", "published_hash"),
    [
        (b"", 0x02CC5D05),
        (b"a", 0x550D7456),
        (b"abc", 0x32D153FF),
        (b"Nobody inspects the spammish repetition", 0xE2293B2F),
    ],
)
def test_xxh32_gives_the_published_hashes(data: bytes, published_hash: int) -> None:
    assert xxh32(data) == published_hash


@pytest.mark.parametrize("stores_size", [True, False])
@pytest.mark.parametrize("block_size", [4, 5, 6, 7])
@pytest.mark.parametrize("is_linked", [True, False])
def test_right_checksum_is_the_one_that_lz4_writes(
    stores_size: bool, block_size: int, is_linked: bool
) -> None:
    frame = lz4.frame.compress(
        b"hello" * 50, store_size=stores_size, block_size=block_size, block_linked=is_linked
    )
    assert patch_lz4_header_checksum(frame, as_old_clients=False) == frame
    as_old_clients = patch_lz4_header_checksum(frame, as_old_clients=True)
    position = lz4_header_end(frame) - 1
    assert as_old_clients[:position] == frame[:position]
    assert as_old_clients[position + 1 :] == frame[position + 1 :]
    assert patch_lz4_header_checksum(as_old_clients, as_old_clients=False) == frame
