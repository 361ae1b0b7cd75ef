"""Which numbers in logs are moments: what producers and clients write there may be anything."""

from datetime import datetime, timedelta
from typing import Final

LATEST_TIMESTAMP_MS: Final = 253_402_300_799_999  # the end of year 9999, where calendars end

# Clocks that are wrong show 1970 or a year to come. None that is right shows less or more than:
EARLIEST_CREDIBLE: Final = datetime(2000, 1, 1)
CREDIBLE_AHEAD: Final = timedelta(days=1)


def is_moment(timestamp_ms: int) -> bool:
    """Whether milliseconds since 1970 are of a day that calendars have. All else is no time."""
    return 0 <= timestamp_ms <= LATEST_TIMESTAMP_MS


def is_credible(moment: datetime, now: datetime) -> bool:
    """Whether a clock that is right may have shown it by now. Both are in UTC and do not say so."""
    return EARLIEST_CREDIBLE <= moment <= now + CREDIBLE_AHEAD
