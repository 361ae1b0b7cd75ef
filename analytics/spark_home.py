"""Spark's folder as a session on this machine sees it, and the JVM that is started from it.

Two things differ from the folder that PySpark brings. The zipped copy of PySpark is left out:
Spark puts it first on the path of every Python worker, and modules of an archive are compiled
anew in each process that imports them, 0.6 s instead of 0.1 s and several times in one command.
Workers take the installed package instead, which is the same code. And `spark-submit` notes its
process, which becomes the JVM, so that it can be ended at any time.
"""

import os
import shlex
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final

_HOLDS_THE_ARCHIVE: Final = "python"
_COMMANDS: Final = "bin"
_STARTS_THE_JVM: Final = "spark-submit"
_PROCESS_FILE: Final = "jvm.pid"

_NOTES_ITS_PROCESS: Final = """\
#!/bin/sh
echo $$ > {file}
exec {command} "$@"
"""


class LocalSparkHome:
    """A folder of links, for masters whose workers run here."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self, spark_home: Path) -> None:
        """Link to what is in Spark's own folder. Raises OSError."""
        commands = self.path / _COMMANDS
        commands.mkdir(parents=True)
        _link(spark_home, self.path, besides={_COMMANDS, _HOLDS_THE_ARCHIVE})
        _link(spark_home / _COMMANDS, commands, besides={_STARTS_THE_JVM})
        script = commands / _STARTS_THE_JVM
        script.write_text(
            _NOTES_ITS_PROCESS.format(
                file=shlex.quote(str(self.path / _PROCESS_FILE)),
                command=shlex.quote(str(spark_home / _COMMANDS / _STARTS_THE_JVM)),
            )
        )
        script.chmod(0o755)

    def kill_jvm(self) -> None:
        """End the JVM if one was started, and with it its Python workers, which watch it."""
        with suppress(OSError, ValueError):
            process = int((self.path / _PROCESS_FILE).read_text())
            # Only a child that nobody has waited for: its number is nobody else's.
            if os.waitpid(process, os.WNOHANG) == (0, 0):
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)


def _link(source: Path, target: Path, besides: set[str]) -> None:
    for entry in source.iterdir():
        if entry.name not in besides:
            (target / entry.name).symlink_to(entry)
