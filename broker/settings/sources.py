"""Where settings come from and which one wins: the file, then the environment, then overrides.

Owns names and origins, not values: what comes out is still text, one entry for each name.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from broker.settings.errors import SettingsError
from broker.settings.properties import PropertiesSyntaxError, decode_properties, parse_properties

_ENVIRONMENT_PREFIX = "KAFKA_"
_SEPARATORS = re.compile("_+")
_PLAIN_SEPARATORS = {"_": ".", "__": "_", "___": "-"}

_PASSED_ON_PREFIXES = ("listener.name.", "authorizer.", "kafka.csv.metrics.")
_PASSED_ON_NAMES = frozenset({"super.users", "allow.everyone.if.no.acl.found"})


class Source(Enum):
    """Where a value comes from, the weaker first."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    OVERRIDE = "override"
    DYNAMIC_DEFAULT = "default of the cluster in ZooKeeper"
    DYNAMIC_BROKER = "this broker's in ZooKeeper"


@dataclass(frozen=True, slots=True)
class Given:
    """A setting as it was given: its text, and the place to look when it is wrong."""

    text: str
    source: Source
    origin: str


@dataclass(frozen=True, slots=True)
class Collected:
    """The winning text of each setting, and the names that are none."""

    given: Mapping[str, Given]
    unknown: Mapping[str, Given]
    ignored_environment: tuple[str, ...]


def is_passed_on(name: str) -> bool:
    """Whether Kafka hands this setting on to a listener or a plug-in without knowing it."""
    return name.startswith(_PASSED_ON_PREFIXES) or name in _PASSED_ON_NAMES


def collect(
    known: Iterable[str],
    file: Path | None,
    overrides: Iterable[str],
    environment: Mapping[str, str],
) -> Collected:
    names = frozenset(known)
    given: dict[str, Given] = {}
    if file is not None:
        given.update(_from_file(file))
    from_environment, ignored = _from_environment(environment, names)
    given.update(from_environment)
    given.update(_from_overrides(overrides))
    unknown = {
        name: one for name, one in given.items() if name not in names and not is_passed_on(name)
    }
    return Collected(
        {name: one for name, one in given.items() if name not in unknown}, unknown, ignored
    )


def _from_file(file: Path) -> dict[str, Given]:
    try:
        properties = parse_properties(decode_properties(file.read_bytes()))
    except OSError as error:
        why = f"cannot be read: {error.strerror}; name a readable properties file"
        raise SettingsError(str(file), None, why) from error
    except PropertiesSyntaxError as error:
        raise SettingsError(str(file), None, str(error)) from error
    given: dict[str, Given] = {}
    for entry in properties:
        origin = f"{_short(file)}, line {entry.line}"
        given[entry.name] = Given(entry.value, Source.FILE, origin)
    return given


def _from_overrides(overrides: Iterable[str]) -> dict[str, Given]:
    given: dict[str, Given] = {}
    for override in overrides:
        name, equals, value = override.partition("=")
        name = name.strip()
        if not equals or not name:
            raise SettingsError("--override", override, "use the form --override setting=value")
        given[name] = Given(value, Source.OVERRIDE, "--override")
    return given


def _from_environment(
    environment: Mapping[str, str], known: frozenset[str]
) -> tuple[dict[str, Given], tuple[str, ...]]:
    """The environment belongs to others too (KAFKA_HEAP_OPTS, KAFKA_HOME): what is no setting
    is reported, not refused. Kubernetes describes a service named kafka by KAFKA_PORT=tcp://...
    """
    by_folded_name = {name.lower(): name for name in known}
    given: dict[str, Given] = {}
    ignored: list[str] = []
    for variable, value in environment.items():
        if not variable.startswith(_ENVIRONMENT_PREFIX):
            continue
        folded = environment_to_name(variable)
        name = by_folded_name.get(folded, folded)
        describes_service = name == "port" and value.startswith("tcp://")
        if describes_service or not (name in known or is_passed_on(name)):
            ignored.append(variable)
            continue
        given[name] = Given(value, Source.ENVIRONMENT, f"environment variable {variable}")
    return given, tuple(sorted(ignored))


def environment_to_name(variable: str) -> str:
    """KAFKA_LOG_DIRS is log.dirs; two underscores stand for one, three for a dash."""
    body = variable.removeprefix(_ENVIRONMENT_PREFIX).lower()
    return _SEPARATORS.sub(lambda run: _PLAIN_SEPARATORS.get(run.group(), run.group()), body)


def closest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that a mistyped one was probably meant to be."""
    import difflib  # needed where something is wrong only

    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.5)), None)


def _short(file: Path) -> str:
    """The path as an operator would type it here."""
    relative = os.path.relpath(file)
    return str(file) if relative.startswith("..") else relative
