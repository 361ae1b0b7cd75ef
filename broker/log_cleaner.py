"""Compaction in a running broker: chooses a log, has a worker clean it, takes over the result.

The work happens in processes of their own. On the loop are the choice, a few logs at a time, and
the exchange of segments, which is a handful of renames. A log that was cut, moved or deleted
while it was cleaned gets nothing of it; a worker that dies costs a new try. Must not know how
records are compacted: `storage.compaction` does.
"""

import asyncio
import errno
import logging
from collections.abc import Container
from pathlib import Path

from broker.compaction_worker import CompactionWorker, WorkerDiedError
from broker.settings import Settings
from storage.checkpoint import TopicPartition
from storage.compaction.job import CleanedGroup, CleaningFailure, CleaningSummary, WorkerMessage
from storage.compaction.pending import PendingCleaning, StaleCleaningError
from storage.compaction.selection import Candidates, CleanableLog
from storage.compaction.settings import CleanerSettings
from storage.errors import LogDirectoryError, StorageError
from storage.log import Log
from storage.log_manager import LogManager
from storage.records.errors import RecordDataError

logger = logging.getLogger(__name__)

# So many logs are looked at before others have their turn on the loop.
LOGS_PER_TURN = 50
STALENESS_CHECK_SECONDS = 1.0
IDLE_WORKER_SECONDS = 60.0
_MEBIBYTE = 1024 * 1024
# Errors that are nobody's fault and may be gone at the next try.
_PASSING_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE)


def cleaner_settings(settings: Settings) -> CleanerSettings:
    """The part of a broker's settings that concerns the cleaner."""
    return CleanerSettings(
        threads=settings.log_cleaner_threads,
        dedupe_buffer_size=settings.log_cleaner_dedupe_buffer_size,
        io_buffer_size=settings.log_cleaner_io_buffer_size,
        io_buffer_load_factor=settings.log_cleaner_io_buffer_load_factor,
        io_max_bytes_per_second=settings.log_cleaner_io_max_bytes_per_second,
        backoff_ms=settings.log_cleaner_backoff_ms,
    )


class LogCleaner:
    """Compacts the logs of a broker, the filthiest first."""

    def __init__(self, logs: LogManager, settings: CleanerSettings) -> None:
        self.settings = settings
        self.candidates = Candidates()
        # What the last cleaning did, and how dirty the dirtiest log was at the last look.
        self.last_summary = CleaningSummary()
        self.max_dirty_ratio = 0.0
        self.workers = [CompactionWorker() for _ in range(settings.threads)]
        self._logs = logs
        self._tasks: list[asyncio.Task[None]] = []
        self._checkpointed = self._cleaned_offsets()

    @property
    def in_progress(self) -> Container[TopicPartition]:
        """The partitions whose segments had better not be removed just now."""
        return {(log.topic, log.partition) for log in self.candidates.in_progress}

    def start(self) -> None:
        for worker in self.workers:
            self._tasks.append(asyncio.create_task(self._run(worker), name="log-cleaner"))

    async def stop(self) -> None:
        """Give up what is under way; the next start begins it anew."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def reconfigure(self, settings: CleanerSettings) -> None:
        """Go on with other settings; what is under way is begun anew."""
        await self.stop()
        self.settings = settings
        self.workers = [CompactionWorker() for _ in range(settings.threads)]
        self.start()

    async def _run(self, worker: CompactionWorker) -> None:
        try:
            while True:
                has_cleaned = False
                try:
                    has_cleaned = await self._clean_filthiest(worker)
                    await self._checkpoint()
                except Exception:
                    logger.exception("The log cleaner failed; it goes on")
                if not has_cleaned:
                    await asyncio.sleep(self.settings.backoff_ms / 1000)
                    if worker.idle_seconds > IDLE_WORKER_SECONDS:
                        await worker.end()
        finally:
            await worker.kill()

    # Choosing

    async def _clean_filthiest(self, worker: CompactionWorker) -> bool:
        """Clean the log that needs it most; False if there is none."""
        best: CleanableLog | None = None
        self.max_dirty_ratio = 0.0
        for number, log in enumerate(self._logs.all_logs(), start=1):
            found = self._consider(log)
            if found is not None and (best is None or found.dirty_ratio > best.dirty_ratio):
                best = found
            if number % LOGS_PER_TURN == 0:
                await asyncio.sleep(0)
        # Other tasks have had their turns: look again at the one that was chosen.
        best = None if best is None else self._consider(best.log)
        if best is None:
            return False
        self.candidates.in_progress.add(best.log)
        try:
            await self._clean(best, worker)
        finally:
            self.candidates.in_progress.discard(best.log)
        return True

    def _consider(self, log: Log) -> CleanableLog | None:
        try:
            found = self.candidates.consider(log, log.environment.clock())
        except OSError as error:
            _report_failure(log, error)
            return None
        except (StorageError, RecordDataError) as error:
            self._give_up_forever(log, str(error))
            return None
        if found is None:
            return None
        self.max_dirty_ratio = max(self.max_dirty_ratio, found.dirty_ratio)
        return found if found.is_due else None

    # Cleaning

    async def _clean(self, cleanable: CleanableLog, worker: CompactionWorker) -> None:
        log = cleanable.log
        now_ms = log.environment.clock()
        try:
            pending = PendingCleaning(cleanable, self.settings)
        except OSError as error:
            _report_failure(log, error)
            return
        try:
            outcome = await self._have_cleaned(pending, worker)
            if isinstance(outcome, CleaningSummary):
                pending.complete(outcome)
        except (LogDirectoryError, StaleCleaningError, WorkerDiedError) as error:
            logger.warning("The cleaning of %s is given up: %s", log.name, error)
            await _abandon(pending, worker)
            self.candidates.postpone(log, now_ms)
        except BaseException:
            await _abandon(pending, worker)
            raise
        else:
            if isinstance(outcome, CleaningFailure):
                self._failed(pending, outcome)
                return
            self.candidates.succeeded(log)
            self.last_summary = outcome
            _log_summary(cleanable, outcome)

    async def _have_cleaned(
        self, pending: PendingCleaning, worker: CompactionWorker
    ) -> CleaningSummary | CleaningFailure:
        """Take over what the worker cleans, group by group, and return its last word."""
        try:
            await worker.send(pending.job)
        except OSError as error:
            raise WorkerDiedError(f"The compaction worker cannot be started: {error}") from error
        while True:
            message = await _receive(pending, worker)
            if not isinstance(message, CleanedGroup):
                return message
            pending.take_over(message)

    def _failed(self, pending: PendingCleaning, failure: CleaningFailure) -> None:
        log = pending.log
        if pending.is_stale or failure.errno in _PASSING_ERRORS:
            logger.warning("The cleaning of %s is put off: %s", log.name, failure.reason)
            self.candidates.postpone(log, log.environment.clock())
        elif failure.errno is not None:
            _report_failure(log, OSError(failure.errno, failure.reason))
        else:
            self._give_up_forever(log, failure.reason)
        _remove_leftovers(pending)

    def _give_up_forever(self, log: Log, reason: str) -> None:
        logger.error("%s cannot be compacted, it is left as it is: %s", log.name, reason)
        self.candidates.uncleanable.add(log)

    # The checkpoint

    async def _checkpoint(self) -> None:
        """Write how far logs are compacted, where that has changed or logs have come or gone."""
        offsets = self._cleaned_offsets()
        if offsets != self._checkpointed:
            self._checkpointed = offsets
            await asyncio.to_thread(self._logs.checkpoint_cleaned_offsets)

    def _cleaned_offsets(self) -> dict[Path, int]:
        return {
            log.directory: log.cleaned_offset
            for log in self._logs.all_logs()
            if log.cleaned_offset is not None
        }


async def _receive(pending: PendingCleaning, worker: CompactionWorker) -> WorkerMessage:
    """The worker's next message, unless it works for a log that is not the same any more."""
    answer = asyncio.create_task(worker.receive())
    try:
        while not (await asyncio.wait({answer}, timeout=STALENESS_CHECK_SECONDS))[0]:
            pending.check()
        return answer.result()
    finally:
        answer.cancel()


async def _abandon(pending: PendingCleaning, worker: CompactionWorker) -> None:
    """Stop a cleaning before its end, and have nothing left of it."""
    await worker.kill()
    _remove_leftovers(pending)


def _remove_leftovers(pending: PendingCleaning) -> None:
    try:
        pending.give_up()
    except OSError as error:
        _report_failure(pending.log, error)


def _report_failure(log: Log, error: OSError) -> None:
    """The disk failed under a log: its directory goes offline."""
    log.environment.on_failure(log.directory.parent, error)


def _log_summary(cleanable: CleanableLog, summary: CleaningSummary) -> None:
    seconds = max(summary.seconds, 0.001)
    logger.info(
        "Cleaned %s from offset %d to %d: %.1f MB of %.1f MB and %d of %d records are left,"
        " %.1f s, %.1f MB/s, %d keys in the dirty part",
        cleanable.log.name,
        cleanable.first_dirty_offset,
        summary.end_offset,
        summary.bytes_written / _MEBIBYTE,
        summary.bytes_read / _MEBIBYTE,
        summary.records_written,
        summary.records_read,
        summary.seconds,
        summary.bytes_read / _MEBIBYTE / seconds,
        summary.keys,
    )
    if summary.records_without_key:
        logger.warning(
            "%s had %d records without a key, which are gone",
            cleanable.log.name,
            summary.records_without_key,
        )
