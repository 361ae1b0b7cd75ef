"""Log levels of the running broker, by the names that Kafka's tools know."""

import logging
from typing import Final

ROOT: Final = "root"

_TRACE: Final = 5
LEVELS: Final = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": _TRACE,
}
_NAMES: Final = {level: name for name, level in LEVELS.items()}


def all_levels() -> dict[str, str]:
    """Every logger and its level; one without a level of its own is shown with the root's."""
    known = logging.getLogger().manager.loggerDict
    loggers = {name: one for name, one in known.items() if isinstance(one, logging.Logger)}
    root = logging.getLogger().level
    return {
        ROOT: _shown(root),
        **{name: _shown(one.level or root) for name, one in sorted(loggers.items())},
    }


def exists(name: str) -> bool:
    known = logging.getLogger().manager.loggerDict
    return name == ROOT or isinstance(known.get(name), logging.Logger)


def set_level(name: str, level: str) -> None:
    _logger(name).setLevel(LEVELS[level])


def unset_level(name: str) -> None:
    """Have a logger follow those above it again."""
    _logger(name).setLevel(logging.NOTSET)


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)


def _shown(level: int) -> str:
    return _NAMES.get(level, logging.getLevelName(level))
