"""Jars for tests, fetched by Maven into a cache folder and never committed."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_FETCH_TIMEOUT_SECONDS: Final = 600.0


class JarsUnavailable(Exception):
    """There is no Maven here, or it cannot fetch; the text is the reason to skip a test."""


def cache_directory() -> Path:
    """$XDG_CACHE_HOME/barnabas, or .cache in the project, which git ignores."""
    configured = os.environ.get("XDG_CACHE_HOME")
    if configured:
        return Path(configured) / "barnabas"
    return Path(__file__).resolve().parents[2] / ".cache"


def fetched_jars(product: str, version: str, artifacts: Sequence[str]) -> Path:
    """The folder with these artifacts (group:name:version) and all that they need at run time;
    whole or not there, whoever else fetches at the time."""
    cache = cache_directory() / product
    libraries = cache / version
    if libraries.is_dir():
        return libraries
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{version}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not libraries.is_dir():
            with tempfile.TemporaryDirectory(dir=cache) as workplace:
                (Path(workplace) / "pom.xml").write_text(_pom(product, version, artifacts))
                _fetch(f"{product} {version}", Path(workplace))
                os.rename(Path(workplace) / "libraries", libraries)
    return libraries


def _fetch(wanted: str, workplace: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise JarsUnavailable(f"Maven (mvn) is missing, which fetches {wanted}")
    command = [maven, "-B", "-q", "dependency:copy-dependencies"]
    command += ["-DincludeScope=runtime", f"-DoutputDirectory={workplace / 'libraries'}"]
    try:
        subprocess.run(
            command,
            cwd=workplace,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_FETCH_TIMEOUT_SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise JarsUnavailable(f"Maven did not fetch {wanted} in time") from None
    except subprocess.CalledProcessError as error:
        reason = next(iter((error.stdout + error.stderr).splitlines()), "no reason given")
        raise JarsUnavailable(f"Maven cannot fetch {wanted}: {reason}") from None


def _pom(product: str, version: str, artifacts: Sequence[str]) -> str:
    dependencies = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
        "</dependency>".format(*artifact.split(":"))
        for artifact in artifacts
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>barnabas</groupId>"
        f"<artifactId>{product}</artifactId><version>{version}</version>"
        f"<packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>"
    )
