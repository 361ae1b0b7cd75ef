"""The compaction of logs, at the settings that hold now."""

from typing import Final

from broker.configs.thread_counts import check_count
from broker.log_cleaner import LogCleaner, cleaner_settings
from broker.settings import Settings

_NAMES: Final = frozenset(
    {
        "log.cleaner.threads",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.backoff.ms",
    }
)


class CleanerChanges:
    """Starts the cleaner anew with other settings; what it was cleaning it begins again."""

    def __init__(self, cleaner: LogCleaner) -> None:
        self._cleaner = cleaner

    def concerns(self, name: str) -> bool:
        return name in _NAMES

    def check(self, now: Settings, wanted: Settings) -> None:
        check_count("log.cleaner.threads", now.log_cleaner_threads, wanted.log_cleaner_threads)

    async def apply(self, _before: Settings, now: Settings) -> None:
        await self._cleaner.reconfigure(cleaner_settings(now))
