"""Files and folders that appear under their names only when they are whole.

Until then they lie beside, under a name that says what they are; in a folder that is there already
they lie inside. What fails leaves nothing. A link is kept, and what it leads to is replaced.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from analytics.targets import Target


@contextmanager
def staged_folder(target: Path | None) -> Iterator[Path | None]:
    """A folder to fill, whose contents are the target's when the block ends well. The target may
    be an empty folder, and stays the one that it is. Raises OSError."""
    if target is None:
        yield None
        return
    place = Target("", target).place
    is_there = place.is_dir()
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place if is_there else place.parent
    staging = Path(tempfile.mkdtemp(prefix=f".{place.name}-", suffix=".part", dir=beside))
    try:
        yield staging
        with _told_of(target):
            if is_there:
                _move_out(staging)
            else:
                staging.chmod(0o777 & ~_umask())
                os.replace(staging, place)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def replace_file(target: Path, text: str) -> None:
    """Write a file, replacing one of that name; a device or a pipe is written to. Raises
    OSError."""
    named = Target("", target)
    if named.is_stream:
        target.write_text(text, encoding="utf-8")
        return
    place = named.place
    descriptor, name = tempfile.mkstemp(prefix=f".{place.name}-", suffix=".part", dir=place.parent)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(descriptor, 0o666 & ~_umask())
            file.write(text)
        os.replace(name, place)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _move_out(folder: Path) -> None:
    """All that is in a folder to the one around it, or nothing."""
    moved: list[Path] = []
    try:
        for one in sorted(folder.iterdir()):
            target = folder.parent / one.name
            if target.exists():
                raise FileExistsError(f"{target.name} is there by now")
            moved.append(one.rename(target))
        folder.rmdir()
    except BaseException:
        for one in moved:
            one.rename(folder / one.name)
        raise


@contextmanager
def _told_of(target: Path) -> Iterator[None]:
    """A failure names what a user named."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(target)) from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
