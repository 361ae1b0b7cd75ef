"""The log's side of one cleaning: what is to be done, and taking over what was done.

Owns the job's description and the moment at which cleaned segments replace others. Runs where
the log lives; the work in between happens elsewhere, while the log goes on. If the log was cut,
moved or deleted meanwhile, what was cleaned is of no use and nothing of it is taken over.
"""

from storage.compaction.job import (
    CleanedGroup,
    CleaningJob,
    CleaningSummary,
    LastRecord,
    SourceSegment,
)
from storage.compaction.selection import CleanableLog
from storage.compaction.settings import CleanerSettings
from storage.errors import StorageError
from storage.log import Log
from storage.segment import Segment
from storage.segment_files import CLEANED_SUFFIX, parse_file_name


class StaleCleaningError(StorageError):
    """The log is not the one any more that was to be cleaned."""


class PendingCleaning:
    """A cleaning from its beginning to its end."""

    def __init__(self, cleanable: CleanableLog, settings: CleanerSettings) -> None:
        """Prepare a cleaning; nothing else may be cleaning this log."""
        log = self.log = cleanable.log
        self._directory = log.directory
        self._truncations = log.truncations
        sources = log.segments.between(0, cleanable.first_uncleanable_offset)
        self._sources = {segment.base_offset: segment for segment in sources}
        self._remove_leftovers()
        self.job = _describe(cleanable, sources, settings)

    @property
    def is_stale(self) -> bool:
        """Whether the log was changed by something else than appends since the beginning."""
        log = self.log
        return (
            log.is_offline
            or log.directory != self._directory
            or log.truncations != self._truncations
            or any(segment not in log.segments for segment in self._sources.values())
        )

    def check(self) -> None:
        """Raise StaleCleaningError where the log is not the same any more."""
        if self.is_stale:
            raise StaleCleaningError(f"{self.log.name} has changed while it was cleaned")

    def take_over(self, group: CleanedGroup) -> None:
        """Put cleaned segments into the place of their sources."""
        log = self.log
        self.check()
        cleaned = []
        for base_offset, sizes, largest in group.cleaned:
            segment = Segment(
                log.environment,
                str(log.directory),
                base_offset,
                log.config,
                sizes,
                CLEANED_SUFFIX,
            )
            segment.largest = largest
            cleaned.append(segment)
        log.replace_segments(cleaned, [self._sources.pop(base) for base in group.replaced])

    def complete(self, summary: CleaningSummary) -> None:
        """All groups have been taken over; the next cleaning begins where this one ended."""
        self.check()
        self.log.cleaned_offset = summary.end_offset

    def give_up(self) -> None:
        """Remove what was cleaned in vain. Whoever wrote it must have stopped."""
        if not self.log.is_offline and self.log.directory == self._directory:
            self._remove_leftovers()

    def _remove_leftovers(self) -> None:
        """A .cleaned file that stays behind would make the next load distrust .swap files."""
        files = self.log.environment.files
        with files.scan(self._directory) as entries:
            names = [entry.name for entry in entries if entry.name.endswith(CLEANED_SUFFIX)]
        for name in names:
            if parse_file_name(name) is not None:
                files.unlink(self._directory / name)


def _describe(
    cleanable: CleanableLog, sources: list[Segment], settings: CleanerSettings
) -> CleaningJob:
    log = cleanable.log
    config = log.config
    first_dirty = cleanable.first_dirty_offset
    return CleaningJob(
        directory=str(log.directory),
        sources=tuple(map(_describe_source, sources)),
        first_dirty_offset=first_dirty,
        first_dirty_position=_position_of(log, first_dirty),
        first_uncleanable_offset=cleanable.first_uncleanable_offset,
        delete_horizon_ms=_delete_horizon_ms(log, first_dirty),
        segment_bytes=config.segment_bytes,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        aborted=tuple(
            log.aborted_transactions(
                log.segments.first.base_offset, cleanable.first_uncleanable_offset
            )
        ),
        last_records={
            entry.producer_id: LastRecord(entry.last_data_offset, entry.epoch)
            for entry in log.producers.producers.values()
        },
        map_bytes=settings.map_bytes_each,
        map_load_factor=settings.io_buffer_load_factor,
        read_bytes=settings.read_bytes_each,
        bytes_per_second=settings.bytes_per_second_each,
    )


def _describe_source(segment: Segment) -> SourceSegment:
    return SourceSegment(
        segment.base_offset,
        segment.size,
        segment.indexes.offsets.size_in_bytes,
        segment.indexes.times.size_in_bytes,
        segment.modified_ms,
    )


def _position_of(log: Log, offset: int) -> int:
    segment = log.segments.floor(offset)
    if segment is None or segment.base_offset == offset:
        return 0
    found = segment.find(offset)
    return segment.size if found is None else found.position


def _delete_horizon_ms(log: Log, first_dirty: int) -> int:
    """Whoever began to read the clean part when it ended has come past its tombstones by now."""
    clean = log.segments.between(0, first_dirty)
    if not clean:
        return 0
    return clean[-1].modified_ms - log.config.delete_retention_ms
