"""Producer snapshots and transaction indexes."""

from pathlib import Path

from storage.producer_entry import BatchSpan, ProducerEntry
from storage.producer_snapshot import encode_snapshot
from storage.txn_index import AbortedTransaction, TxnIndex
from tests.unit.broker.dump_log.support import dump, write
from tests.unit.storage.support import environment

SNAPSHOT = "00000000000000000007.snapshot"
TXN_INDEX = "00000000000000000003.txnindex"


def test_producers_are_shown_with_their_last_batch_and_transaction(tmp_path: Path) -> None:
    entries = [
        ProducerEntry(1, 2, 3, 40, 5, [BatchSpan(9, 6, 2, 40)]),
        ProducerEntry(7, 0, -1, 50),
    ]
    path = write(tmp_path / SNAPSHOT, encode_snapshot(entries))
    shown = dump(path)
    assert shown.lines[1:] == [
        "producerId: 1 producerEpoch: 2 coordinatorEpoch: 3 currentTxnFirstOffset: Some(5)"
        " firstSequence: 7 lastSequence: 9 lastOffset: 6 offsetDelta: 2 timestamp: 40",
        "producerId: 7 producerEpoch: 0 coordinatorEpoch: -1 currentTxnFirstOffset: None ",
    ]
    assert (shown.status, shown.complaints) == (0, [])


def test_a_corrupt_snapshot_costs_a_line(tmp_path: Path) -> None:
    data = bytearray(encode_snapshot([ProducerEntry(1)]))
    data[-1] ^= 1
    path = write(tmp_path / SNAPSHOT, data)
    shown = dump(path)
    assert shown.complaints == [f"{path}: The checksum does not match"]
    assert shown.status == 1


def test_aborted_transactions_are_shown(tmp_path: Path) -> None:
    path = tmp_path / TXN_INDEX
    index = TxnIndex(environment(), str(path), 3, 0)
    index.append(AbortedTransaction(1, 4, 9, 8))
    write(path, path.read_bytes(), b"torn")
    shown = dump(path)
    assert shown.lines[1:] == [
        "version: 0 producerId: 1 firstOffset: 4 lastOffset: 9 lastStableOffset: 8"
    ]
    assert (shown.status, shown.complaints) == (0, [])


def test_a_transaction_index_of_a_later_version_costs_a_line(tmp_path: Path) -> None:
    path = write(tmp_path / TXN_INDEX, b"\0\x01" + bytes(32))
    shown = dump(path)
    assert len(shown.complaints) == 1
    assert "version 1" in shown.complaints[0]
    assert shown.status == 1
