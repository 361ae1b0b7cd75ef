"""The archive that a Spark cluster's executors need: `spark-submit --py-files barnabas.zip`.

Owns what is in it: the code that tasks run, and nothing that has to be compiled. The packages that
it stands on are named in docs/analytics-internals.md and are installed where executors run.
"""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_HOME: Final = Path(__file__).resolve().parent.parent
_ROOMS: Final = ("analytics", "storage")
_DISCOVERED: Final = "pyspark_barnabas*.py"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip file knows: same code, same bytes


def write_archive(target: Path) -> int:
    """Write the archive; the number of files in it."""
    files = sorted(_files())
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            entry = zipfile.ZipInfo(str(file.relative_to(_HOME)), _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.read_bytes())
    return len(files)


def _files() -> Iterator[Path]:
    for room in _ROOMS:
        yield from (_HOME / room).rglob("*.py")
    yield from _HOME.glob(_DISCOVERED)
