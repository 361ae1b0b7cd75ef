import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from analytics.archive import write_archive
from broker.cli import main
from tests.unit.analytics.segments import batch, write_segment

READ = """
import sys
from analytics.source.options import parse_options
from analytics.source.readers import RecordReader
import analytics, pyspark_barnabas, pyspark_barnabas_batches, pyspark_barnabas_problems
reader = RecordReader(parse_options({"path": sys.argv[1]}))
print(analytics.__file__, sum(t.num_rows for s in reader.partitions() for t in reader.read(s)))
"""


def test_the_archive_alone_reads_logs(tmp_path: Path) -> None:
    write_segment(tmp_path / "logs", "t-0", 0, [batch(0, 5)])
    archive = tmp_path / "barnabas.zip"
    assert main(["spark-archive", str(archive)]) == 0
    finished = subprocess.run(
        [sys.executable, "-P", "-c", READ, str(tmp_path / "logs")],
        env={"PYTHONPATH": str(archive), "PATH": "", "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert finished.stdout.split() == [f"{archive}/analytics/__init__.py", "5"], finished.stderr


def test_the_same_code_makes_the_same_archive(tmp_path: Path) -> None:
    one, other = tmp_path / "one.zip", tmp_path / "other.zip"
    assert write_archive(one) == write_archive(other) > 50
    assert one.read_bytes() == other.read_bytes()
    names = zipfile.ZipFile(one).namelist()
    assert {"pyspark_barnabas.py", "broker/groups/record_formats.py"} <= set(names)
    assert not any(name.startswith(("tests", "controller")) for name in names)


def test_an_archive_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "no" / "such.zip"
    assert main(["spark-archive", str(target)]) == 1
    assert capsys.readouterr().err == f"{target}: cannot be written: No such file or directory\n"
