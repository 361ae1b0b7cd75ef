"""Make the project's .venv ready for a purpose. Standard library only: it runs before anything
is installed. Called by scripts/setup, which has found that there is something to do.

The files `.venv/.ready-PURPOSE` say that all was installed, and are written last. A setup that
was interrupted leaves `.venv/.unfinished` behind, and the next one starts over.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
UNFINISHED = VENV / ".unfinished"

# Each purpose installs all that the ones before it need.
EXTRAS = {"broker": "", "test": "[test]", "dev": "[dev]"}


def main(purpose: str, stamp: str) -> int:
    if purpose not in EXTRAS:
        print(f"{purpose}: unknown purpose; use one of {', '.join(EXTRAS)}", file=sys.stderr)
        return 1
    try:
        with setup_lock():
            if not is_ready(purpose, stamp):
                set_up(purpose, stamp)
    except subprocess.CalledProcessError:
        print(
            "Setting up .venv failed (the reason stands above); check the network and run again",
            file=sys.stderr,
        )
        return 1
    except OSError as error:
        print(f"Setting up .venv failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


@contextmanager
def setup_lock() -> Iterator[None]:
    """One setup at a time; the lock ends with its process, whatever becomes of it."""
    folder = ROOT / ".cache"
    folder.mkdir(exist_ok=True)
    with open(folder / "setup.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Waiting for another setup of .venv to finish ...", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def ready_file(purpose: str) -> Path:
    return VENV / f".ready-{purpose}"


def is_ready(purpose: str, stamp: str) -> bool:
    return PYTHON.exists() and read(ready_file(purpose)) == stamp


def set_up(purpose: str, stamp: str) -> None:
    print(
        f"Setting up .venv to run {purpose} (once; the first time takes a minute or two) ...",
        file=sys.stderr,
    )
    if not can_be_kept(stamp):
        shutil.rmtree(VENV, ignore_errors=True)
    VENV.mkdir(exist_ok=True)
    UNFINISHED.touch()
    if not PYTHON.exists():
        venv.create(VENV, with_pip=True, symlinks=True)
    install(f".{EXTRAS[purpose]}")
    satisfied = list(EXTRAS)[: list(EXTRAS).index(purpose) + 1]
    for name in satisfied:
        write_at_once(ready_file(name), stamp)
    UNFINISHED.unlink()


def can_be_kept(stamp: str) -> bool:
    """Whether packages may be added to the .venv that is there: it works, no setup of it was
    interrupted, and it was made in this place (commands in it hold its path)."""
    if not PYTHON.exists() or UNFINISHED.exists():
        return False
    stamps = [text for purpose in EXTRAS if (text := read(ready_file(purpose))) is not None]
    return all(text.endswith(f" {ROOT}") for text in stamps) and has_pip()


def has_pip() -> bool:
    finished = subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True)
    return finished.returncode == 0


def install(requirement: str) -> None:
    """pip's own words go to standard error, so that standard output is the program's alone.
    A plain path entry (`compat`) starts every Python 25 ms sooner than the import hook that
    setuptools would install otherwise."""
    subprocess.run(
        [
            PYTHON,
            "-m",
            "pip",
            "install",
            "--disable-pip-version-check",
            "--no-input",
            "--config-settings=editable_mode=compat",
            "--editable",
            requirement,
        ],
        check=True,
        stdout=sys.stderr,
        cwd=ROOT,
    )


def read(file: Path) -> str | None:
    try:
        return file.read_text().rstrip("\n")
    except FileNotFoundError:
        return None


def write_at_once(file: Path, text: str) -> None:
    """The file is there in full or not at all."""
    temporary = file.with_name(f"{file.name}.new")
    temporary.write_text(f"{text}\n")
    os.replace(temporary, file)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
