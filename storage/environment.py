"""What all logs of one process share: clock, files, open descriptors, deferred work.

Owns no behaviour; it is handed to every log so that tests can replace each part.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from storage.deferred_deletes import DeferredDeletes
from storage.files import Files
from storage.open_files import OpenFiles

if TYPE_CHECKING:
    from storage.log import Log

DEFAULT_OPEN_FILES: Final = 2000
# transactional.id.expiration.ms, which Kafka 2.5 uses for idle producer ids as well
DEFAULT_PRODUCER_EXPIRATION_MS: Final = 7 * 24 * 60 * 60 * 1000


def _ignore_failure(directory: Path, error: OSError) -> None:
    """Nobody manages the directory: the exception that the caller gets says it all."""


def flush_at_once(log: "Log") -> None:
    """The append waits for the disk."""
    log.flush()


def flush_later(log: "Log") -> None:
    """Rolled segments are flushed by whoever calls `LogManager.flush_due` or `Log.flush`."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Shared by all logs of a log manager."""

    clock: Callable[[], int]  # milliseconds since the epoch
    files: Files = field(default_factory=Files)
    open_files: OpenFiles = field(default_factory=lambda: OpenFiles(DEFAULT_OPEN_FILES))
    deferred_deletes: DeferredDeletes = field(default_factory=DeferredDeletes)
    producer_expiration_ms: int = DEFAULT_PRODUCER_EXPIRATION_MS
    # Open every batch that a client sends, as Kafka does, even where no setting needs it.
    validate_records: bool = False
    # An I/O error met in a log: the argument is the log directory that holds the partition.
    on_failure: Callable[[Path, OSError], None] = _ignore_failure
    # flush.messages is reached; a broker hands this to a thread and answers when it is done.
    on_flush_due: "Callable[[Log], None]" = flush_at_once
    # A segment was rolled; its data should reach the disk soon, but nobody waits for it.
    on_roll: "Callable[[Log], None]" = flush_later
