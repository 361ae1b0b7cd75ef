"""Files and folders that appear under their names only when they are whole.

Until then they lie beside, under a name that says what they are. What fails leaves nothing.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def staged_folder(target: Path | None) -> Iterator[Path | None]:
    """A folder to fill, which takes the target's name when the block ends well. The target may be
    an empty folder. Raises OSError."""
    if target is None:
        yield None
        return
    target = target.absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}-", suffix=".part", dir=target.parent))
    try:
        yield staging
        staging.chmod(0o777 & ~_umask())
        os.replace(staging, target)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def replace_file(target: Path, text: str) -> None:
    """Write a file, replacing one of that name. Raises OSError."""
    target = target.absolute()
    descriptor, name = tempfile.mkstemp(
        prefix=f".{target.name}-", suffix=".part", dir=target.parent
    )
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(descriptor, 0o666 & ~_umask())
            file.write(text)
        os.replace(name, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
