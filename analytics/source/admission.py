"""The reader of streaming queries as PySpark wants it from 4.2 on.

Owns the answer to how much a batch may take, in Spark's own terms. Loaded only where Spark has
them.
"""

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from analytics.source.ranges import offsets_as_json, offsets_from_json
from analytics.source.streaming import JsonOffsets, LogStreamReader, Spans


class AdmittingLogStreamReader(LogStreamReader, SupportsTriggerAvailableNow):
    """Told where each batch starts, so that limits hold from the first batch on."""

    _takes_what_is_there = False
    _target: Spans | None = None

    def latestOffset(self, start: JsonOffsets, limit: ReadLimit) -> JsonOffsets:  # type: ignore[override]  # noqa: N802
        """A query that takes what is there and ends waits for nothing. What that is is settled
        here, not sooner: where the query starts has been asked meanwhile, and may be the end."""
        if self._takes_what_is_there and self._target is None:
            self._target = self.available()
        end = self.next_end(
            offsets_from_json(start),
            self.available() if self._target is None else self._target,
            is_limited=not isinstance(limit, ReadAllAvailable),
            may_wait=not self._takes_what_is_there,
        )
        return offsets_as_json(end)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """A least number of offsets is seen to here: Spark's limits name one number each."""
        most = self.options.max_offsets_per_trigger
        if most is None and self.options.min_offsets_per_trigger is None:
            return ReadAllAvailable()
        return ReadMaxRows(most or (1 << 62))

    def reportLatestOffset(self) -> JsonOffsets | None:  # noqa: N802
        return offsets_as_json({name: span.end for name, span in self.available().items()})

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Whatever is appended after the first batch has been asked for is for another query."""
        self._takes_what_is_there = True
