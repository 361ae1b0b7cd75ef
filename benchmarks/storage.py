"""What the log engine costs: appends, reads, look-ups, starts and compaction.

    python -m benchmarks.storage [--directory DIR] [--only append]

Each figure stands beside a yardstick that was measured in the same run: the system calls that
move the same bytes, or the same operation at another size. Rounds of both alternate, and the best
round of each counts, because everything else that the machine does only makes it slower.
"""

import argparse
import logging
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from benchmarks.storage_appends import measure_appends, measure_reads
from benchmarks.storage_compaction import measure_compaction
from benchmarks.storage_lookups import measure_lookups
from benchmarks.storage_rows import Row
from benchmarks.storage_starts import measure_starts

MEASUREMENTS: Final[dict[str, Callable[[Path], Iterator[Row]]]] = {
    "append": measure_appends,
    "read": measure_reads,
    "lookup": measure_lookups,
    "start": measure_starts,
    "compact": measure_compaction,
}
_LAYOUT: Final = "{:44} {:>12} {:>24} {:>7} {:>7}  {}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, default=None, help="where to write; a temporary")
    parser.add_argument("--only", choices=MEASUREMENTS, default=None)
    options = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    print(_LAYOUT.format("", "measured", "beside", "ratio", "bar", ""))
    started = time.perf_counter()
    for name, measure in MEASUREMENTS.items():
        if options.only in (None, name):
            with tempfile.TemporaryDirectory(dir=options.directory, prefix="bench-") as directory:
                for row in measure(Path(directory)):
                    show(row)
    print(f"{time.perf_counter() - started:.0f} s in all")


def show(row: Row) -> None:
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    bar = "" if row.bar is None else f"{row.bar:g}"
    verdict = "" if row.holds is None else ("holds" if row.holds else "MISSED")
    print(_LAYOUT.format(row.name, row.figure, row.yardstick, ratio, bar, verdict), flush=True)


if __name__ == "__main__":
    main()
