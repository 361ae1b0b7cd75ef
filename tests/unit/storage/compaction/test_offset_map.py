"""The map of keys: bounded memory, what happens when it is full, marks."""

import pytest

from storage.compaction.offset_map import OffsetMap
from storage.compaction.offset_table import BYTES_PER_SLOT, NOT_FOUND, OffsetTable

MANY = 20_000


def keys_of(count: int) -> list[bytes]:
    return [b"key %d" % number for number in range(count)]


@pytest.mark.parametrize("memory", [4_000_000, 1_000_000])
def test_the_last_offset_of_each_key_is_found(memory: int) -> None:
    """With much memory in a dict, with little in the table."""
    offset_map = OffsetMap(memory, 0.9, 0, 2 * MANY)
    keys = keys_of(MANY)
    for start in range(0, MANY, 100):
        assert offset_map.put(keys[start : start + 100], range(start, start + 100))
    again = keys[::2]
    assert offset_map.put(again, range(MANY, MANY + len(again)))
    offset_map.seal()
    assert offset_map.latest_offset == MANY + len(again) - 1
    expected = dict(zip(keys, range(MANY), strict=True))
    expected.update(zip(again, range(MANY, MANY + len(again)), strict=True))
    assert offset_map.find(keys) == [expected[key] for key in keys]
    assert offset_map.find([b"unknown"]) == [NOT_FOUND]
    marks = offset_map.marks(0, 99)
    assert marks is not None
    assert list(marks) == [0, 1] * 50


def test_a_full_map_says_how_far_it_came_and_loses_nothing() -> None:
    offset_map = OffsetMap(1600 * BYTES_PER_SLOT, 0.5, 100, 10_000)
    keys = keys_of(2000)
    put = 0
    while put < len(keys):
        part = keys[put : put + 64]
        if not offset_map.put(part, range(100 + put, 100 + put + len(part))):
            break
        put += len(part)
    offset_map.seal()
    taken = offset_map.latest_offset + 1 - 100
    assert put <= taken < put + 64
    assert taken <= 1600 * 0.5
    assert offset_map.find(keys[:taken]) == list(range(100, 100 + taken))
    assert offset_map.find(keys[taken : taken + 1]) == [NOT_FOUND]
    # Known keys find room in a full map.
    assert OffsetTable(3 * BYTES_PER_SLOT, 0.9).capacity == 2


@pytest.mark.parametrize("load_factor", [0.001, 0.9, 1.0])
def test_the_smallest_table_takes_a_key_and_is_never_full(load_factor: float) -> None:
    """Compaction must come forward, and a search must meet a free slot."""
    table = OffsetTable(3 * BYTES_PER_SLOT, load_factor)
    assert 1 <= table.capacity <= 2
    left = table.put((key, number) for number, key in enumerate(keys_of(5)))
    assert left == table.capacity
    assert table.find([b"unknown"]) == [NOT_FOUND]


def test_offsets_outside_the_marks_are_not_known() -> None:
    offset_map = OffsetMap(1600, 0.9, 10, 1_000_000)
    offset_map.put([b"a"], [10])
    offset_map.skip_to(500)
    offset_map.seal()
    assert offset_map.marks(10, 11) == bytearray(b"\1\0")
    assert offset_map.marks(9, 11) is None
    assert offset_map.marks(10, 10 + 1600 // 16) is None
