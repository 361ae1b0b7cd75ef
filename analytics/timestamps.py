"""Which numbers in logs are moments: what producers and clients write there may be anything."""

from typing import Final

LATEST_TIMESTAMP_MS: Final = 253_402_300_799_999  # the end of year 9999, where calendars end


def is_moment(timestamp_ms: int) -> bool:
    """Whether milliseconds since 1970 are of a day that calendars have. All else is no time."""
    return 0 <= timestamp_ms <= LATEST_TIMESTAMP_MS
