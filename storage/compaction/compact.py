"""Compaction in one process and one call, for tools, tests and benchmarks.

A broker has the middle part done by a worker process instead (`broker/log_cleaner.py`).
"""

from collections.abc import Callable

from storage.compaction.cleaning import Cleaning
from storage.compaction.job import CleaningSummary
from storage.compaction.pending import PendingCleaning
from storage.compaction.selection import examine
from storage.compaction.settings import CleanerSettings
from storage.compaction.throttle import Throttle
from storage.log import Log

DEFAULT_SETTINGS = CleanerSettings()


def compact_log(
    log: Log,
    settings: CleanerSettings = DEFAULT_SETTINGS,
    transferred: Callable[[int], None] | None = None,
) -> CleaningSummary | None:
    """Clean all of a log that may be cleaned, however little that is; None if there is nothing.

    `transferred` is told of bytes read and written, instead of a throttle.
    """
    cleanable = examine(log, log.environment.clock())
    if not cleanable.cleanable_bytes:
        return None
    pending = PendingCleaning(cleanable, settings)
    if transferred is None:
        transferred = Throttle(settings.io_max_bytes_per_second).transferred
    cleaning = Cleaning(log.environment, pending.job, transferred)
    try:
        for group in cleaning.run():
            pending.take_over(group)
    except BaseException:
        pending.give_up()
        raise
    pending.complete(cleaning.summary)
    return cleaning.summary
