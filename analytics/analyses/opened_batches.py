"""Single batches read back from their segment files, by the place that the batch table names."""

from analytics.logs import places
from storage.records.batches import Batch, is_intact, parse_header
from storage.records.errors import RecordDataError


def opened_batch(segment: str, position: int, size: int) -> Batch | None:
    """The batch at a place, if it is still there and whole."""
    try:
        data = places.open_file(segment).read(size, position)
        batch = Batch(parse_header(data), memoryview(data))
    except (OSError, RecordDataError):
        return None
    return batch if len(data) == size and is_intact(batch) else None
