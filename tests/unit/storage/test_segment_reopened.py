"""The first append to a segment that an earlier process made."""

import logging
from pathlib import Path

import pytest

from tests.unit.storage.support import append_values, open_log, read_values


@pytest.mark.parametrize("values", [[], [b"a"]])
def test_first_append_after_a_clean_start_finds_the_indexes_right(
    tmp_path: Path, values: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path)
    append_values(log, *values)
    log.close()
    reopened = open_log(tmp_path, clean=True)
    with caplog.at_level(logging.WARNING):
        append_values(reopened, b"b")
    assert caplog.messages == []
    assert [value for _, value in read_values(reopened)] == [*values, b"b"]
