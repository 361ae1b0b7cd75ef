"""Shows producer snapshots and the transactions that were aborted (`.snapshot`, `.txnindex`).

Owns their lines; their layouts are the log engine's. Such files are small and read whole.
"""

from typing import Final

from broker.dump_log.opened import OpenedFile
from broker.dump_log.report import Report
from storage.environment import Environment
from storage.errors import CorruptIndexError, CorruptSnapshotError
from storage.producer_entry import NO_TRANSACTION, ProducerEntry
from storage.producer_snapshot import decode_snapshot
from storage.txn_index import TxnIndex

_TXN_INDEX_VERSION: Final = 0  # there is no other


def dump_snapshot(path: str, report: Report) -> None:
    """Show each producer with the last batch that is known of it."""
    try:
        file = OpenedFile(path)
        entries = decode_snapshot(file.read(file.size, 0))
    except CorruptSnapshotError as error:
        report.problem(f"{path}: {error}")
        return
    for entry in entries:
        report.line(_producer_line(entry))


def dump_txn_index(path: str, base_offset: int, report: Report) -> None:
    """Show each aborted transaction."""
    file = OpenedFile(path)
    index = TxnIndex(Environment(clock=lambda: 0), path, base_offset, file.size)
    try:
        aborted_transactions = index.entries
    except CorruptIndexError as error:
        report.problem(str(error))
        return
    for aborted in aborted_transactions:
        report.line(
            f"version: {_TXN_INDEX_VERSION} producerId: {aborted.producer_id}"
            f" firstOffset: {aborted.first_offset} lastOffset: {aborted.last_offset}"
            f" lastStableOffset: {aborted.last_stable_offset}"
        )


def _producer_line(entry: ProducerEntry) -> str:
    first = entry.txn_first_offset
    line = (
        f"producerId: {entry.producer_id} producerEpoch: {entry.epoch}"
        f" coordinatorEpoch: {entry.coordinator_epoch}"
        f" currentTxnFirstOffset: {'None' if first <= NO_TRANSACTION else f'Some({first})'} "
    )
    for span in entry.batches[:1]:
        line += (
            f"firstSequence: {span.first_sequence} lastSequence: {span.last_sequence}"
            f" lastOffset: {span.last_offset} offsetDelta: {span.offset_delta}"
            f" timestamp: {span.timestamp}"
        )
    return line
