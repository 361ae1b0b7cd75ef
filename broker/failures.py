"""What goes wrong while a request is handled, and the wire error code for it.

`ApiError` is raised where the code is known. Storage raises exceptions of its own; the one table
here maps them. Anything else is a bug.
"""

from collections.abc import Awaitable

from network.protocol import ErrorCode
from storage import errors as storage
from storage.records import errors as records


class ApiError(Exception):
    """A failure that has its wire error code."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message


STORAGE_FAILURES: dict[type[Exception], ErrorCode] = {
    storage.LogDirectoryError: ErrorCode.KAFKA_STORAGE_ERROR,
    storage.OffsetOutOfRangeError: ErrorCode.OFFSET_OUT_OF_RANGE,
    storage.RecordBatchTooLargeError: ErrorCode.RECORD_LIST_TOO_LARGE,
    storage.OutOfOrderSequenceError: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    storage.ProducerFencedError: ErrorCode.INVALID_PRODUCER_EPOCH,
    storage.TransactionCoordinatorFencedError: ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    storage.InvalidTransactionStateError: ErrorCode.INVALID_TXN_STATE,
    records.CorruptRecordError: ErrorCode.CORRUPT_MESSAGE,
    records.InvalidTimestampError: ErrorCode.INVALID_TIMESTAMP,
    records.InvalidRecordError: ErrorCode.INVALID_RECORD,
    records.RecordTooLargeError: ErrorCode.MESSAGE_TOO_LARGE,
    records.UnsupportedForMessageFormatError: ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    records.UnsupportedCodecError: ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
}

EXPECTED_FAILURES: tuple[type[Exception], ...] = (
    ApiError,
    storage.StorageError,
    records.RecordDataError,
)


async def verdict(work: Awaitable[object]) -> tuple[ErrorCode, str | None]:
    """What a response says of work that succeeds without a word, or fails with a code."""
    try:
        await work
    except ApiError as error:
        return error.code, error.message
    return ErrorCode.NONE, None


def error_code(error: Exception) -> ErrorCode:
    """The code for an expected failure; UNKNOWN_SERVER_ERROR for all else."""
    if isinstance(error, ApiError):
        return error.code
    for kind in type(error).__mro__:
        code = STORAGE_FAILURES.get(kind)
        if code is not None:
            return code
    return ErrorCode.UNKNOWN_SERVER_ERROR
