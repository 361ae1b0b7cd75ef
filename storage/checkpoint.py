"""Small text files that remember offsets across restarts, in Kafka's format.

Owns the format and its atomic replacement. Must not know what the offsets mean.

    version            0
    number of entries
    one line each      topic partition offset     (offset checkpoints, one per log directory)
                       epoch start-offset         (leader epochs, one per partition)
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from storage.errors import CorruptCheckpointError
from storage.files import AnyPath, Files

RECOVERY_POINT_CHECKPOINT: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT: Final = "log-start-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT: Final = "replication-offset-checkpoint"
CLEANER_CHECKPOINT: Final = "cleaner-offset-checkpoint"
LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"

_VERSION: Final = 0

TopicPartition = tuple[str, int]


def write_offsets(files: Files, path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace an offset checkpoint, durably."""
    lines = (f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())
    _write(files, path, lines, durable=True)


def read_offsets(files: Files, path: AnyPath) -> dict[TopicPartition, int]:
    """The entries of an offset checkpoint; none if there is no file."""
    offsets: dict[TopicPartition, int] = {}
    for line in _read(files, path):
        fields = line.split()
        if len(fields) != 3:
            raise CorruptCheckpointError(f"Malformed line in {path}: {line!r}")
        offsets[fields[0], _number(fields[1], path)] = _number(fields[2], path)
    return offsets


def write_epochs(
    files: Files, path: AnyPath, epochs: Iterable[tuple[int, int]], *, durable: bool
) -> None:
    """Replace a leader epoch checkpoint: pairs of epoch and start offset."""
    _write(files, path, (f"{epoch} {offset}" for epoch, offset in epochs), durable=durable)


def read_epochs(files: Files, path: AnyPath) -> list[tuple[int, int]]:
    """The entries of a leader epoch checkpoint; none if there is no file."""
    epochs: list[tuple[int, int]] = []
    for line in _read(files, path):
        fields = line.split()
        if len(fields) != 2:
            raise CorruptCheckpointError(f"Malformed line in {path}: {line!r}")
        epochs.append((_number(fields[0], path), _number(fields[1], path)))
    return epochs


def _write(files: Files, path: AnyPath, lines: Iterable[str], *, durable: bool) -> None:
    entries = list(lines)
    text = "\n".join([str(_VERSION), str(len(entries)), *entries, ""])
    files.replace_whole(path, text.encode(), durable=durable)


def _read(files: Files, path: AnyPath) -> list[str]:
    try:
        text = files.read_whole(path).decode()
    except FileNotFoundError:
        return []
    except UnicodeDecodeError:
        raise CorruptCheckpointError(f"{path} is not text") from None
    lines = text.splitlines()
    if not lines:
        return []
    if not text.endswith("\n"):
        raise CorruptCheckpointError(f"{path} ends in the middle of a line")
    if _number(lines[0], path) != _VERSION:
        raise CorruptCheckpointError(f"{path} has version {lines[0]}, {_VERSION} is expected")
    if len(lines) == 1:
        return []
    entries = lines[2:]
    if len(entries) != _number(lines[1], path):
        raise CorruptCheckpointError(f"{path} should have {lines[1]} entries, has {len(entries)}")
    return entries


def _number(text: str, path: AnyPath) -> int:
    try:
        return int(text)
    except ValueError:
        raise CorruptCheckpointError(f"{text!r} in {path} is not a number") from None
