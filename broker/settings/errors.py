"""How a wrong setting is told: one line, `setting: value: why`, with the way out."""

from broker.errors import StartupError


class SettingsError(StartupError):
    """A setting that is unknown, malformed or at odds with another."""

    def __init__(self, name: str, value: str | None, why: str, origin: str = "") -> None:
        self.name = name
        place = f" ({origin})" if origin else ""
        shown = "" if value is None else f"{_one_line(value)}: "
        super().__init__(f"{name}: {shown}{why}{place}")


class UnknownSettingError(SettingsError):
    """There is no such setting."""


class ConflictingSettingsError(SettingsError):
    """Values that are right by themselves, but not together."""


def _one_line(value: str) -> str:
    return value if value.isprintable() and value else repr(value)
