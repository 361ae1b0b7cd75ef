"""A task's memory does not depend on the size of what it reads."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.analytics.segments import batch, write_segment

MEGABYTE = 1_000_000
READ = """
import sys
from analytics.source.options import parse_options
from analytics.source.readers import RecordReader
reader = RecordReader(parse_options({"path": sys.argv[1], "maxBytesPerTask": "1000000000"}))
(split,) = reader.partitions()
rows = sum(table.num_rows for table in reader.read(split))
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(rows, int(peak.split()[1]) * 1024)
"""


pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="a process cannot ask for its peak here"
)


def rows_and_memory(log_dir: Path, batches: int) -> tuple[int, int]:
    write_segment(log_dir, "t-0", 0, [bytes(batch(0, 500)) * batches])
    finished = subprocess.run(
        [sys.executable, "-c", READ, str(log_dir)], capture_output=True, text=True, timeout=240
    )
    rows, memory = finished.stdout.split()
    return int(rows), int(memory)


def test_a_segment_ten_times_as_large_takes_no_more_memory(tmp_path: Path) -> None:
    in_batch = len(batch(0, 500))
    count = 10 * MEGABYTE // in_batch
    rows, memory = rows_and_memory(tmp_path / "small", count)
    assert rows == 500 * count
    many_rows, larger = rows_and_memory(tmp_path / "large", 10 * count)
    assert many_rows == 10 * rows
    assert larger - memory < 15 * MEGABYTE
