"""Ranges of message versions, as the schema notation writes them: `"3"`, `"0-8"`, `"7+"`, `"none"`.

Knows nothing of messages or bytes.
"""

from functools import cache
from typing import NamedTuple

UNBOUNDED = 0x7FFF


class Versions(NamedTuple):
    """An inclusive range; the empty range has `lowest` above `highest`."""

    lowest: int
    highest: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.lowest <= version <= self.highest

    def __str__(self) -> str:
        if self.lowest > self.highest:
            return "none"
        if self.lowest == self.highest:
            return str(self.lowest)
        return f"{self.lowest}+" if self.highest == UNBOUNDED else f"{self.lowest}-{self.highest}"


NONE = Versions(0, -1)


@cache
def parse_versions(text: str) -> Versions:
    """Read a range in the notation; raises ValueError for anything else."""
    if text == "none":
        return NONE
    if text.endswith("+"):
        return Versions(int(text[:-1]), UNBOUNDED)
    lowest, _, highest = text.partition("-")
    return Versions(int(lowest), int(highest or lowest))
