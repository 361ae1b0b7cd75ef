"""The archive that a Spark cluster's executors need: `spark-submit --py-files barnabas.zip`.

Owns what is in it: this package and every module of the project that it imports, and nothing that
has to be compiled. The packages that it stands on are named in docs/analytics-internals.md and are
installed where executors run.
"""

import ast
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_HOME: Final = Path(__file__).resolve().parent.parent
_DISCOVERED: Final = "pyspark_barnabas*.py"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip file knows: same code, same bytes


def write_archive(target: Path) -> int:
    """Write the archive; the number of files in it."""
    files = archived_files()
    with zipfile.ZipFile(target, "w") as archive:
        for file in files:
            entry = zipfile.ZipInfo(str(file.relative_to(_HOME)), _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.read_bytes())
    return len(files)


def archived_files() -> list[Path]:
    """The modules that readers and analyses need, wherever in the project they are."""
    waiting = [*(_HOME / "analytics").rglob("*.py"), *_HOME.glob(_DISCOVERED)]
    found: set[Path] = set()
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting.extend(_imported(file))
    return sorted(found)


def _imported(file: Path) -> Iterator[Path]:
    """The project's modules that a module imports, anywhere in it, and the packages around them."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            yield from _files_of(name)


def _files_of(name: str) -> Iterator[Path]:
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        module = _HOME.joinpath(*parts[:length])
        for file in (module.with_suffix(".py"), module / "__init__.py"):
            if file.is_file():
                yield file
