"""Offset, time and transaction index: bytes, search, truncation, damage."""

from pathlib import Path

import pytest

from storage.errors import CorruptIndexError
from storage.faulty_files import FaultyFiles
from storage.offset_index import OffsetIndex
from storage.time_index import TimeIndex
from storage.txn_index import AbortedTransaction, TxnIndex
from tests.unit.storage.support import environment

BASE = 1000


def offset_index(
    directory: Path, max_bytes: int = 80, files: FaultyFiles | None = None
) -> OffsetIndex:
    index = OffsetIndex(environment(files=files), str(directory / "0.index"), BASE, max_bytes, 0)
    index.create()
    return index


def time_index(directory: Path) -> TimeIndex:
    index = TimeIndex(environment(), str(directory / "0.timeindex"), BASE, 120, 0)
    index.create()
    return index


def test_offset_index_is_preallocated_and_trimmed_to_kafkas_bytes(tmp_path: Path) -> None:
    index = offset_index(tmp_path, max_bytes=85)
    path = tmp_path / "0.index"
    assert path.stat().st_size == 80
    index.append(BASE + 5, 17)
    index.append(BASE + 9, 4711)
    index.trim()
    assert path.read_bytes() == bytes.fromhex("00000005 00000011 00000009 00001267")


def test_offset_lookup_finds_the_last_entry_at_or_before(tmp_path: Path) -> None:
    index = offset_index(tmp_path)
    assert index.lookup(BASE + 7) == (BASE, 0)
    for number in range(1, 6):
        index.append(BASE + 10 * number, 100 * number)
    assert index.lookup(BASE + 9) == (BASE, 0)
    assert index.lookup(BASE + 10) == (BASE + 10, 100)
    assert index.lookup(BASE + 49) == (BASE + 40, 400)
    assert index.lookup(BASE + 9999) == (BASE + 50, 500)


def test_offset_lookup_is_right_in_the_cold_part_too(tmp_path: Path) -> None:
    index = offset_index(tmp_path, max_bytes=8 * 5000)
    for number in range(5000):
        index.append(BASE + 2 * number, 10 * number)
    for number in (0, 1, 2000, 3974, 3975, 3976, 4998, 4999):
        assert index.lookup(BASE + 2 * number) == (BASE + 2 * number, 10 * number)
        assert index.lookup(BASE + 2 * number + 1) == (BASE + 2 * number, 10 * number)


def test_offset_index_finds_the_first_entry_at_or_after_a_position(tmp_path: Path) -> None:
    index = offset_index(tmp_path)
    assert index.offset_at_or_after(0) is None
    index.append(BASE + 10, 100)
    index.append(BASE + 20, 200)
    assert index.offset_at_or_after(100) == BASE + 10
    assert index.offset_at_or_after(101) == BASE + 20
    assert index.offset_at_or_after(201) is None


def test_offsets_that_do_not_grow_are_refused(tmp_path: Path) -> None:
    index = offset_index(tmp_path)
    index.append(BASE + 10, 100)
    with pytest.raises(CorruptIndexError):
        index.append(BASE + 10, 200)


@pytest.mark.parametrize(
    ("offset", "kept"), [(BASE, 0), (BASE + 10, 0), (BASE + 11, 1), (BASE + 30, 2), (BASE + 99, 3)]
)
def test_offset_index_truncation_drops_entries_at_or_above(
    tmp_path: Path, offset: int, kept: int
) -> None:
    index = offset_index(tmp_path)
    for number in (1, 2, 3):
        index.append(BASE + 10 * number, 100 * number)
    index.truncate_to(offset)
    assert index.entries == kept
    assert index.last_offset == BASE + 10 * kept
    index.append(BASE + 200, 4000)
    assert index.lookup(BASE + 200) == (BASE + 200, 4000)


def test_index_goes_on_after_its_mapping_was_released(tmp_path: Path) -> None:
    index = offset_index(tmp_path)
    index.append(BASE + 10, 100)
    index.release()
    assert index.lookup(BASE + 10) == (BASE + 10, 100)
    index.append(BASE + 20, 200)
    index.release()
    index.trim()
    reopened = OffsetIndex(environment(), index.path, BASE, 80, 16)
    assert reopened.lookup(BASE + 25) == (BASE + 20, 200)
    reopened.append(BASE + 30, 300)
    assert (tmp_path / "0.index").stat().st_size == 80


def test_an_entry_that_does_not_fit_on_the_disk_is_not_counted(tmp_path: Path) -> None:
    files = FaultyFiles()
    index = offset_index(tmp_path, files=files)
    files.space_left = 5
    with pytest.raises(OSError, match="No space left"):
        index.append(BASE + 10, 100)
    assert index.entries == 0


@pytest.mark.parametrize(
    "content",
    [
        bytes(16),  # a second entry that does not grow: preallocated, never trimmed
        bytes.fromhex("00000005 00000011 00"),
        bytes.fromhex("00000005 00002711"),
        bytes.fromhex("80000005 00000011"),
    ],
)
def test_offset_index_that_cannot_be_right_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "0.index"
    path.write_bytes(content)
    index = OffsetIndex(environment(), str(path), BASE, 80, len(content))
    with pytest.raises(CorruptIndexError):
        index.check(segment_size=10_000)


def test_time_index_has_kafkas_bytes_and_skips_times_that_do_not_grow(tmp_path: Path) -> None:
    index = time_index(tmp_path)
    index.append(500, BASE + 1)
    index.append(500, BASE + 4)
    index.append(499, BASE + 7)
    index.append(600, BASE + 9)
    index.trim()
    assert (tmp_path / "0.timeindex").read_bytes() == bytes.fromhex(
        "00000000000001f4 00000001 0000000000000258 00000009"
    )


def test_time_lookup_and_truncation(tmp_path: Path) -> None:
    index = time_index(tmp_path)
    assert index.lookup(5) == (-1, BASE)
    for number in (1, 2, 3):
        index.append(100 * number, BASE + 10 * number)
    assert index.lookup(99) == (-1, BASE)
    assert index.lookup(100) == (100, BASE + 10)
    assert index.lookup(250) == (200, BASE + 20)
    index.truncate_to(BASE + 20)
    assert index.last_entry == (100, BASE + 10)
    index.truncate_to(BASE)
    assert index.last_entry == (-1, BASE)


def test_time_index_that_does_not_grow_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "0.timeindex"
    path.write_bytes(bytes.fromhex("0000000000000258 00000001 00000000000001f4 00000009"))
    with pytest.raises(CorruptIndexError):
        TimeIndex(environment(), str(path), BASE, 120, 24).check()


def test_txn_index_has_kafkas_bytes(tmp_path: Path) -> None:
    path = tmp_path / "0.txnindex"
    index = TxnIndex(environment(), str(path), 0, 0)
    assert not path.exists()
    index.append(AbortedTransaction(7, 1, 10, 5))
    assert path.read_bytes() == bytes.fromhex(
        "0000 0000000000000007 0000000000000001 000000000000000a 0000000000000005"
    )
    reopened = TxnIndex(environment(), str(path), 0, 34)
    assert reopened.entries == [AbortedTransaction(7, 1, 10, 5)]


def test_txn_index_search_stops_where_everything_is_decided(tmp_path: Path) -> None:
    index = TxnIndex(environment(), str(tmp_path / "0.txnindex"), 0, 0)
    aborted = [
        AbortedTransaction(0, 0, 10, 11),
        AbortedTransaction(1, 5, 15, 13),
        AbortedTransaction(2, 18, 35, 25),
        AbortedTransaction(3, 32, 50, 40),
    ]
    for transaction in aborted:
        index.append(transaction)
    assert index.search(0, 100) == (aborted, False)
    assert index.search(0, 32) == (aborted[:3], True)
    assert index.search(0, 35) == (aborted, True)
    assert index.search(10, 35) == (aborted, True)
    assert index.search(11, 35) == (aborted[1:], True)
    assert index.search(20, 41) == (aborted[2:], False)


def test_txn_index_truncation_and_order(tmp_path: Path) -> None:
    index = TxnIndex(environment(), str(tmp_path / "0.txnindex"), 0, 0)
    index.append(AbortedTransaction(0, 0, 10, 2))
    index.append(AbortedTransaction(1, 5, 15, 16))
    with pytest.raises(CorruptIndexError):
        index.append(AbortedTransaction(2, 1, 15, 16))
    index.truncate_to(15)
    assert [entry.producer_id for entry in index.entries] == [0]
    index.reset()
    assert not index.exists
    index.append(AbortedTransaction(3, 0, 3, 4))
    assert [entry.producer_id for entry in index.entries] == [3]
