"""What somebody wants of topics, before it is checked: plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

USE_DEFAULT = -1

Assignment = Mapping[int, Sequence[int]]


@dataclass(slots=True)
class NewTopic:
    """A topic that somebody wants."""

    name: str
    partitions: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    assignment: Assignment = field(default_factory=dict)
    config: Mapping[str, str | None] = field(default_factory=dict)
