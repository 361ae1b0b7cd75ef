"""Records for clients that know only the older message formats (Fetch 0 to 3)."""

from broker.failures import ApiError
from network.protocol import ErrorCode
from storage.files import FileSlice
from storage.log import Log, LogRead, ReadIsolation
from storage.records import iter_batches
from storage.records.conversion import down_convert
from storage.records.layout import Buffer

LAST_VERSION_OF_MAGIC_0 = 1
LAST_VERSION_OF_MAGIC_1 = 3


def newest_magic(fetch_version: int) -> int | None:
    """The newest format that a client of this version reads; None: every one."""
    if fetch_version <= LAST_VERSION_OF_MAGIC_0:
        return 0
    return 1 if fetch_version <= LAST_VERSION_OF_MAGIC_1 else None


def readable_records(
    log: Log, read: LogRead, offset: int, max_bytes: int, magic: int
) -> FileSlice | Buffer:
    """What was read, in a format that the client knows; as it is where it is in one already.

    A range that holds nothing for such a client (transaction markers) is passed over, or the
    client would ask for the same range again and again.
    """
    if log.config.record_magic <= magic or not len(read.slice):
        return read.slice
    data: Buffer = read.slice.read()
    while True:
        batches = list(iter_batches(data))
        if not batches or all(batch.header.magic <= magic for batch in batches):
            return data
        if not log.config.message_downconversion_enable:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        converted = down_convert(data, magic, offset).data
        next_offset = batches[-1].header.next_offset
        if len(converted) or next_offset >= log.high_watermark:
            return converted
        data = log.read(next_offset, max_bytes, ReadIsolation.HIGH_WATERMARK).slice.read()
