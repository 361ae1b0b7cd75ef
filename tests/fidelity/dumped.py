"""What Kafka's DumpLogSegments printed, as numbers and names that can be compared.

Owns the reading of its output, of 2.5.1 and 3.9.1 alike. Keys and values are left out: they are
printed raw and tell less than a consumer does.
"""

import re
from dataclasses import dataclass, field

_FILE = re.compile(r"^Dumping (\S+)$")
_FIELD = re.compile(r"(\w+): (\[[^\]]*\]|\S+)")
_CONTENTS = re.compile(r" (?:key|payload): .*$", re.DOTALL)
# 3.9.1 writes some names with another capital letter.
_SPELLINGS = {"keySize": "keysize", "valueSize": "valuesize"}
_TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime", "NoTimestampType")


class Fields(dict[str, str]):
    """The `name: value` pairs of a line."""

    def number(self, name: str) -> int:
        return int(self[name])

    def flag(self, name: str) -> bool:
        return self[name] == "true"

    @property
    def timestamp(self) -> int:
        return int(self[self.timestamp_type])

    @property
    def timestamp_type(self) -> str:
        return next(name for name in _TIMESTAMP_TYPES if name in self)


@dataclass(slots=True)
class DumpedFile:
    """The lines about one file: batches and their records, or the entries of an index."""

    batches: list[Fields] = field(default_factory=list)
    records: list[Fields] = field(default_factory=list)
    entries: list[Fields] = field(default_factory=list)


def parse_dump(text: str) -> dict[str, DumpedFile]:
    """What was said of each file, by the name it was given on the command line.

    Of a file that was dumped several times the first time counts.
    """
    files: dict[str, DumpedFile] = {}
    current = DumpedFile()
    for line in text.split("\n"):
        if named := _FILE.match(line):
            current = DumpedFile()
            files.setdefault(named[1], current)
        elif line.startswith("| offset: "):
            current.records.append(_fields(_CONTENTS.sub("", line)))
        elif "magic: " in line and line.startswith(("baseOffset: ", "offset: ")):
            current.batches.append(_fields(line))
        elif line.startswith(("offset: ", "timestamp: ", "producerId: ", "version: ")):
            current.entries.append(_fields(line))
    return files


def _fields(line: str) -> Fields:
    return Fields((_SPELLINGS.get(name, name), value) for name, value in _FIELD.findall(line))
