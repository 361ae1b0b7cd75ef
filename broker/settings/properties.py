"""Java's .properties format: comments, continuation lines, escapes, three kinds of separator.

Owns the syntax alone; what the names mean is for others to know.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BLANK = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_TRAILING_BACKSLASHES = re.compile(r"\\*$")
_KEY = re.compile(r"(?:\\.|[^\\=:\s])*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|u|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class PropertiesSyntaxError(ValueError):
    """A text that Java's reader would refuse: only a \\u without its four digits."""


@dataclass(frozen=True, slots=True)
class Property:
    name: str
    value: str
    line: int


def parse_properties(text: str) -> list[Property]:
    """The properties in their order, repeated names included (the last one counts)."""
    return [_parse_line(number, line) for number, line in _logical_lines(text)]


def decode_properties(raw: bytes) -> str:
    """UTF-8 where the bytes allow it, else the ISO-8859-1 that Java's reader expects."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("iso-8859-1")


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines joined where they end in an odd number of backslashes, with their first number."""
    joined: list[str] = []
    start = 0
    for number, raw in enumerate(_LINE_END.split(text), 1):
        line = raw.lstrip(_BLANK)
        if not joined:
            if not line or line[0] in "#!":
                continue
            start = number
        if _ends_in_continuation(line):
            joined.append(line[:-1])
            continue
        joined.append(line)
        yield start, "".join(joined)
        joined = []
    if joined:
        yield start, "".join(joined)


def _ends_in_continuation(line: str) -> bool:
    match = _TRAILING_BACKSLASHES.search(line)
    return match is not None and len(match.group()) % 2 == 1


def _parse_line(number: int, line: str) -> Property:
    key = _KEY.match(line)
    key_end = key.end() if key else 0
    separator = _SEPARATOR.match(line, key_end)
    value_start = separator.end() if separator else key_end
    return Property(
        _unescape(line[:key_end], number), _unescape(line[value_start:], number), number
    )


def _unescape(text: str, line: int) -> str:
    if "\\" not in text:
        return text

    def replace(match: re.Match[str]) -> str:
        escape = match.group(1)
        if escape == "u":
            raise PropertiesSyntaxError(f"line {line}: \\u needs four hexadecimal digits")
        if escape[0] == "u":
            return chr(int(escape[1:], 16))
        return _ESCAPED.get(escape, escape)

    return _ESCAPE.sub(replace, text)
