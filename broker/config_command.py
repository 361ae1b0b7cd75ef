"""`barnabas config`: every setting with its type, default and current value.

A table on a terminal, tab-separated lines elsewhere, Markdown for the documentation. Passwords are
never shown. Owns how settings are shown; what they are is the tables' business.
"""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final

from broker.errors import StartupError
from broker.settings import BROKER_SETTINGS, TOPIC_SETTINGS, Settings
from broker.settings.definition import Dynamic, Setting, declarations, to_text
from broker.settings.dynamic import DYNAMIC_ONLY_SETTINGS
from broker.settings.settings import SECTIONS
from broker.settings.sources import Source, closest_name

HIDDEN: Final = "[hidden]"
_COLUMNS: Final = ("NAME", "TYPE", "DEFAULT", "VALUE", "SOURCE")
_ABSENT: Final = "null"
_NAME_WIDTH: Final = 40

TOPIC_NAMES: Final = {
    setting.broker.name: name
    for name, setting in TOPIC_SETTINGS.items()
    if setting.broker is not None
}
"""The topic-level name of a broker setting, where there is one."""


def run(parsed: argparse.Namespace, settings: Settings) -> int:
    if parsed.names:
        write("\n\n".join(_explained(settings, parsed.names)) + "\n")
    elif sys.stdout.isatty():
        _print_table(settings)
    else:
        write("".join("\t".join(row) + "\n" for row in (_COLUMNS, *_rows(settings))))
    return 0


def write(text: str) -> None:
    """Write to standard output, of which `| head` may have seen enough."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_table(settings: Settings) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(_COLUMNS[0], overflow="fold", min_width=_NAME_WIDTH)
    for column in _COLUMNS[1:]:
        table.add_column(column, overflow="fold")
    for row in _rows(settings):
        is_default = row[-1] == Source.DEFAULT.value
        table.add_row(*row, style="dim" if is_default else "bold")
    Console(highlight=False, markup=False).print(table)


def _rows(settings: Settings) -> Iterator[tuple[str, ...]]:
    for name, setting in BROKER_SETTINGS.items():
        source = settings.source_of(name).value
        yield name, setting.kind.value, default_text(setting), _value(settings, name), source


def _value(settings: Settings, name: str) -> str:
    if BROKER_SETTINGS[name].is_secret and settings[name] is not None:
        return HIDDEN
    return _shown(settings[name])


def _shown(value: Any) -> str:
    text = to_text(value)
    return _ABSENT if text is None else text


def default_text(setting: Setting[Any]) -> str:
    return _shown(setting.default)


# -- single settings ---------------------------------------------------------------------------


def _explained(settings: Settings, names: Iterable[str]) -> list[str]:
    return ["\n".join(_details(settings, setting)) for setting in map(_find, names)]


def _find(name: str) -> Setting[Any]:
    setting = BROKER_SETTINGS.get(name) or TOPIC_SETTINGS.get(name)
    if setting is not None:
        return setting
    close = closest_name(name, BROKER_SETTINGS.keys() | TOPIC_SETTINGS.keys())
    way_out = f"did you mean {close}?" if close else "`barnabas config` lists all"
    raise StartupError(f"{name}: unknown setting; {way_out}")


def _details(settings: Settings, setting: Setting[Any]) -> Iterator[str]:
    yield setting.name
    yield f"  {setting.documentation}"
    if setting.idle:
        yield "  (recognised, but without effect so far)"
    facts = {
        "type": setting.kind.value,
        "valid values": setting.constraint.wanted if setting.constraint else "",
        "importance": setting.importance.value,
    }
    if setting.name in BROKER_SETTINGS:
        given = settings.given.get(setting.name)
        origin = f" ({given.origin})" if given else " (default)"
        facts["default"] = default_text(setting)
        facts["value"] = _value(settings, setting.name) + origin
        facts["changes"] = changes_text(setting)
        facts["for a topic"] = TOPIC_NAMES.get(setting.name, "")
    else:
        behind = TOPIC_SETTINGS[setting.name].broker
        facts["set"] = "for each topic by itself"
        facts["default"] = f"the broker's {behind.name}" if behind else default_text(setting)
    for name, text in facts.items():
        if text:
            yield f"  {name + ':':<14}{text}"


def changes_text(setting: Setting[Any]) -> str:
    """When a change takes effect."""
    match setting.dynamic:
        case Dynamic.READ_ONLY:
            return "at a restart"
        case Dynamic.PER_BROKER:
            return "at run time, for each broker by itself"
        case Dynamic.CLUSTER_WIDE:
            return "at run time, for a broker or for all"


# -- documentation -----------------------------------------------------------------------------

_INTRODUCTION: Final = """\
# Settings

Written by `barnabas config --markdown`; edit the tables under `broker/settings/`, not this page.

Names, types and defaults are those of Apache Kafka 2.5. Settings come from a properties file, from
environment variables (`KAFKA_LOG_DIRS` is `log.dirs`; two underscores stand for one, three for a
dash) and from `--override NAME=VALUE`, the later winning over the earlier. Some change while the
broker runs (`kafka-configs`, or any admin client): *per-broker* ones for one broker by its id,
*cluster-wide* ones also for all brokers at once. A topic's own value, under the name in the last
column, wins over the broker's.

ZooKeeper keeps what is changed at run time, where Kafka keeps it: `/config/topics`,
`/config/brokers/ID` and `/config/brokers/<default>`, with a notice under `/config/changes` that has
every broker read it again. A broker's own value wins over the default of the cluster, and that over
file, environment and command line. Passwords are encrypted there under `password.encoder.secret`;
without it they are refused. Key and trust stores change for one listener at a time, as
`listener.name.NAME.ssl.keystore.location`. Settings of clients and users are read and kept for
quotas to come.

Where Apache Kafka 2.5.1 fails with an error of its own, Barnabas does what it was asked or says
what is wrong: entries appended to a list that is not set are appended to its default, and a value
of null is refused.

A setting marked † is recognised and checked, but has no effect yet.
"""
_HEADER: Final = """\
| name | type | default | valid values | importance | changes | topic | what it does |
|---|---|---|---|---|---|---|---|"""


def markdown() -> str:
    """docs/configuration.md."""
    parts = [_INTRODUCTION]
    for title, settings in _sections().items():
        rows = map(_markdown_row, settings)
        parts.append(f"## {title}\n\n{_HEADER}\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _sections() -> dict[str, Iterable[Setting[Any]]]:
    of_topics_alone = [one for one in TOPIC_SETTINGS.values() if one.broker is None]
    return {
        **{title: declarations(table) for title, table in SECTIONS.items()},
        "Brokers, at run time only": DYNAMIC_ONLY_SETTINGS.values(),
        "Topics only": of_topics_alone,
    }


def _markdown_row(setting: Setting[Any]) -> str:
    default = default_text(setting)
    topic = TOPIC_NAMES.get(setting.name)
    cells = (
        f"`{setting.name}`" + (" †" if setting.idle else ""),
        setting.kind.value,
        f"`{default}`" if default else "(empty)",
        setting.constraint.wanted if setting.constraint else "",
        setting.importance.value,
        setting.dynamic.value,
        f"`{topic}`" if topic else "",
        setting.documentation,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
