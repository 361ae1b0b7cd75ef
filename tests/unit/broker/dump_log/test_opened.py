"""Files as they were when they were opened, whatever a broker does to them meanwhile."""

from pathlib import Path
from struct import Struct

import pytest

from broker.dump_log.opened import EntryFile, OpenedFile
from tests.unit.broker.dump_log.support import write

PAIR = Struct(">ii")


def test_what_is_appended_later_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "file", b"abc")
    file = OpenedFile(str(path))
    with path.open("ab") as appended:
        appended.write(b"def")
    assert file.read(10, 1) == b"bc"


def test_a_file_that_became_shorter_is_told_of(tmp_path: Path) -> None:
    path = write(tmp_path / "file", b"abcdef")
    file = OpenedFile(str(path))
    path.write_bytes(b"ab")
    with pytest.raises(OSError, match="shorter"):
        file.descriptor.read(6, 0)
    with pytest.raises(OSError, match="shorter"):
        file.descriptor.read(1, 4)


def test_entries_are_read_one_by_one_and_by_their_slots(tmp_path: Path) -> None:
    count = 20_000  # more than are read at a time
    entries = [(number, -number) for number in range(count)]
    path = write(tmp_path / "file", *(PAIR.pack(*entry) for entry in entries), b"torn")
    file = EntryFile(str(path), PAIR)
    assert (file.count, file.torn_bytes) == (count, 4)
    assert list(file) == entries
    assert file[count - 1] == entries[-1]
