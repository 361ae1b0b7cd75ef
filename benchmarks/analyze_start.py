"""How long `barnabas analyze` takes on a small directory, beside a Spark that does next to nothing.

Run as `python -m benchmarks.analyze_start [DIR]`. Without a directory it writes one with a few
topics. Each form is run in turn, several times over, and the quickest run of each is shown.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from storage.records.builder import BatchBuilder
from storage.records.layout import Codec

_ROUNDS: Final = 3
_START_MS: Final = 1_700_000_000_000
_BARE: Final = """
import sys, tempfile
from pathlib import Path
from analytics.session import spark_session
from broker.java import find_java, spark_java_home
with tempfile.TemporaryDirectory() as folder:
    place = Path(folder)
    java_home = spark_java_home(find_java(), place / "java")
    with spark_session(java_home, "local[*]", place / "log", place / "scratch") as spark:
        spark.range(1000).count()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        logs = parsed.directory or _small_directory(Path(folder, "logs"))
        _compare(logs, Path(folder), parsed.rounds)


def _compare(logs: Path, folder: Path, rounds: int) -> None:
    report, tables = folder / "report.html", folder / "tables"
    analyze = [sys.executable, "-m", "broker", "analyze", str(logs)]
    forms = {
        "a bare session, one trivial job": [sys.executable, "-c", _BARE],
        "terminal": analyze,
        "--report": [*analyze, "--report", str(report)],
        "--report --out": [*analyze, "--report", str(report), "--out", str(tables)],
    }
    seconds: dict[str, list[float]] = {name: [] for name in forms}
    for _ in range(rounds):
        for name, command in forms.items():
            shutil.rmtree(tables, ignore_errors=True)
            seconds[name].append(_seconds(command))
    bare = min(next(iter(seconds.values())))
    for name, taken in seconds.items():
        quickest = min(taken)
        over = f"{quickest - bare:+6.1f} s  x {quickest / bare:.2f}"
        print(f"{name:34} {quickest:6.1f} s  {over}")


def _seconds(command: list[str]) -> float:
    began = time.monotonic()
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.stderr:  # the exit status is also 1 where faults are found
        raise SystemExit(finished.stderr)
    return time.monotonic() - began


def _small_directory(logs: Path) -> Path:
    for codec in Codec:
        for partition in range(2):
            directory = logs / f"orders-{codec.name.lower()}-{partition}"
            directory.mkdir(parents=True)
            batches = (_batch(number * 50, codec) for number in range(20))
            (directory / f"{0:020d}.log").write_bytes(b"".join(batches))
            for kind in ("index", "timeindex"):
                (directory / f"{0:020d}.{kind}").touch()
    return logs


def _batch(base_offset: int, codec: Codec) -> bytes:
    builder = BatchBuilder(base_offset=base_offset, codec=codec)
    for offset in range(base_offset, base_offset + 50):
        builder.append(_START_MS + offset * 1000, str(offset).encode(), b"v" * 100, (), offset)
    return bytes(builder.build())


if __name__ == "__main__":
    main()
