"""Numbers as people read them."""

from datetime import date, datetime
from typing import Any, Final

_UNITS: Final = ("B", "KB", "MB", "GB", "TB", "PB", "EB")
_STEP: Final = 1000
_SPANS: Final = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (0.001, "ms"))


def count(number: float) -> str:
    return f"{number:,.0f}"


def size(number: float) -> str:
    """Bytes, in powers of a thousand, to three digits."""
    sign = "-" if number < 0 else ""
    amount = abs(float(number))
    power = 0
    while amount >= _STEP and power < len(_UNITS) - 1:
        amount /= _STEP
        power += 1
    digits = 0 if not power or amount >= 100 else 1 if amount >= 10 else 2
    return f"{sign}{amount:.{digits}f} {_UNITS[power]}"


def share(number: float) -> str:
    return f"{number:.1%}" if abs(number) >= 0.001 or not number else f"{number:.3%}"


def span(seconds: float) -> str:
    """A length of time in its largest fitting unit."""
    for length, unit in _SPANS:
        if abs(seconds) >= length:
            return f"{seconds / length:.1f}".removesuffix(".0") + f" {unit}"
    return "0 s"


def moment(value: datetime) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S}"


def shown(column: str, value: Any) -> str:
    """A cell of a result, by what its column's name says that it is."""
    if value is None:
        return "-"
    match value:
        case bool():
            return "yes" if value else "no"
        case datetime():
            return moment(value)
        case date():
            return f"{value:%Y-%m-%d}"
        case int() | float():
            return _number(column, value)
        case _:
            return str(value)


def _number(column: str, value: int | float) -> str:
    if column.endswith("_skew"):
        return f"{value:,.2f}"
    if "share" in column:
        return share(value)
    if "bytes" in column:
        return size(value)
    if "seconds" in column:
        return span(value)
    if "days" in column:
        return f"{value:,.1f}"
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) < 100 else count(value)
    return str(value) if _is_name(column) else count(value)


def _is_name(column: str) -> bool:
    """Whether a number is a name of something: it is shown as it is, without commas."""
    return column.endswith(("_id", "offset", "epoch", "partition", "position", "rank", "magic"))
