"""HDFS as places need it: PyArrow's file system, with Hadoop's own reasons where it fails.

PyArrow reads HDFS through libhdfs, which runs Java in this process. Owns what both leave open:
Java's class path, errors that say no more than that there was one, and stack traces that libhdfs
prints on the process's error output, also for a file that is merely not there. Must not know what
the files hold.
"""

import os
import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape, glob
from importlib.util import find_spec
from typing import Any

SCHEMES = ("hdfs", "viewfs")

_STANDARD_ERROR = 2
_UNKNOWN_ERROR = 255  # libhdfs's errno for whatever has none
# java.net.ConnectException: Connection refused, or one that it was told of in brackets
_EXCEPTION = r"(?:\w+\.)+([\w$]+)(?:\([\w.$]+\))?: (.*)"
_CAUSE = re.compile(f"^Caused by: {_EXCEPTION}$", re.MULTILINE)
_FIRST_EXCEPTION = re.compile(f"(?:java|org)\\.{_EXCEPTION}$", re.MULTILINE)
_WAYS_OUT = {
    "Unable to load libhdfs": "name the folder of libhdfs.so in ARROW_LIBHDFS_DIR",
    "Unable to load libjvm": "name a Java in JAVA_HOME",
}
_NO_CLASS = "NoClassDefFoundError"
_one_at_a_time = threading.Lock()


def connect(root: str) -> tuple["HadoopFiles", str]:
    """The file system of a root, and its path in it. One without a host is Hadoop's default."""
    from pyarrow.fs import FileSystem

    _set_class_path()
    with _reasons():
        files, path = FileSystem.from_uri(root.replace(":///", "://default/", 1))
    return HadoopFiles(files), path


class HadoopFiles:
    """As much of PyArrow's FileSystem as reading needs. Raises OSError with Hadoop's reason."""

    def __init__(self, files: Any) -> None:
        self._files = files

    def get_file_info(self, wanted: Any) -> Any:
        """Of a path, or of all in the folder that a selector names."""
        from pyarrow.fs import FileInfo, FileSelector, FileType

        with _reasons():
            if isinstance(wanted, str):
                # PyArrow takes a path for missing whatever went wrong. Of a listing it says what.
                try:
                    self._files.get_file_info(FileSelector(wanted))
                except FileNotFoundError:
                    return FileInfo(wanted, FileType.NotFound)
                except OSError as error:
                    if error.errno is not None:  # else it is a file, which has no listing
                        raise
            return self._files.get_file_info(wanted)

    def open_input_file(self, path: str) -> Any:
        with _reasons():
            return self._files.open_input_file(path)


def _set_class_path() -> None:
    """Spark's own jars have Hadoop's client in them; HADOOP_CONF_DIR is where its settings lie."""
    if "CLASSPATH" in os.environ:
        return
    home = os.environ.get("SPARK_HOME") or _pyspark_home()
    jars = sorted(glob(os.path.join(escape(home), "jars", "*.jar")))
    if any(os.path.basename(jar).startswith("hadoop-client") for jar in jars):
        settings = os.environ.get("HADOOP_CONF_DIR")
        os.environ["CLASSPATH"] = ":".join([settings, *jars] if settings else jars)


def _pyspark_home() -> str:
    found = find_spec("pyspark")
    return os.path.dirname(found.origin) if found is not None and found.origin else ""


@contextmanager
def _reasons() -> Iterator[None]:
    """What libhdfs prints meanwhile becomes the reason of an error, or nothing without one."""
    with _one_at_a_time, tempfile.TemporaryFile() as printed:
        try:
            with _error_output_to(printed.fileno()):
                yield
        except OSError as error:
            printed.seek(0)
            reason = _reason(printed.read().decode(errors="replace"), error)
            if error.errno in (None, _UNKNOWN_ERROR):
                raise OSError(reason) from error
            raise OSError(error.errno, reason) from error


@contextmanager
def _error_output_to(file: int) -> Iterator[None]:
    saved = os.dup(_STANDARD_ERROR)
    os.dup2(file, _STANDARD_ERROR)
    try:
        yield
    finally:
        os.dup2(saved, _STANDARD_ERROR)
        os.close(saved)


def _reason(printed: str, error: OSError) -> str:
    """One line: what was at the bottom of it in Java, else what libhdfs or PyArrow says."""
    causes = _CAUSE.findall(printed) or _FIRST_EXCEPTION.findall(printed)[:1]
    if causes:
        kind, text = causes[-1]
        return text if kind == "RemoteException" else f"{kind}: {text}"
    if _NO_CLASS in printed:
        return "the CLASSPATH has no Hadoop client in it"
    if error.errno not in (None, _UNKNOWN_ERROR):
        return os.strerror(error.errno)
    line: str = (printed or str(error)).strip().splitlines()[0]
    return f"{line}: {_WAYS_OUT[line]}" if line in _WAYS_OUT else line
