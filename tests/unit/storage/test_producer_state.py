"""Idempotent and transactional producers: checks, snapshots, transactions."""

from pathlib import Path

import pytest

from storage.append_info import AppendInfo, AppendOrigin, ReadIsolation
from storage.environment import Environment
from storage.errors import (
    CorruptSnapshotError,
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    TransactionCoordinatorFencedError,
)
from storage.log import Log
from storage.log_config import INT32_MAX, LogConfig
from storage.producer_entry import BatchSpan, ProducerEntry
from storage.producer_snapshot import decode_snapshot, encode_snapshot
from storage.records.builder import ProducerInfo, build_end_txn_batch
from storage.records.control import ControlType, EndTxnMarker
from tests.unit.storage.support import NOW, ManualClock, make_batch, open_log


def produce(
    log: Log,
    producer_id: int,
    sequence: int,
    *,
    epoch: int = 0,
    count: int = 1,
    transactional: bool = False,
) -> AppendInfo:
    producer = ProducerInfo(producer_id, epoch, sequence, transactional)
    values = [b"value"] * count
    return log.append_as_leader(make_batch(*values, producer=producer), 0)


def end(
    log: Log,
    producer_id: int,
    control: ControlType,
    *,
    epoch: int = 0,
    coordinator_epoch: int = 0,
) -> AppendInfo:
    marker = EndTxnMarker(control, coordinator_epoch)
    batch = build_end_txn_batch(NOW, producer_id, epoch, marker)
    return log.append_as_leader(batch, 0, AppendOrigin.COORDINATOR)


# Sequence numbers


def test_a_batch_sent_again_is_answered_with_the_original_offsets(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    first = produce(log, 7, 0, count=3)
    for sequence in range(3, 7):
        produce(log, 7, sequence)
    again = produce(log, 7, 0, count=3)
    assert again.is_duplicate
    assert (again.first_offset, again.last_offset) == (first.first_offset, first.last_offset)
    assert log.end_offset == 7


def test_only_the_last_five_batches_are_remembered(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for sequence in range(6):
        produce(log, 7, sequence)
    assert produce(log, 7, 1).is_duplicate
    with pytest.raises(OutOfOrderSequenceError):
        produce(log, 7, 0)


def test_a_gap_is_refused_and_leaves_the_log_untouched(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    produce(log, 7, 0)
    with pytest.raises(OutOfOrderSequenceError):
        produce(log, 7, 2)
    assert log.end_offset == 1
    assert produce(log, 7, 1).first_offset == 1


def test_an_unknown_producer_may_begin_anywhere(tmp_path: Path) -> None:
    assert produce(open_log(tmp_path), 7, 42).first_offset == 0


def test_sequence_numbers_wrap(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    produce(log, 7, INT32_MAX - 1, count=2)
    assert produce(log, 7, 0).first_offset == 2
    assert produce(log, 7, INT32_MAX - 1, count=2).is_duplicate
    assert BatchSpan(1, 10, 3, 0).first_sequence == INT32_MAX - 1


def test_a_new_epoch_begins_at_zero_and_fences_the_old_one(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    produce(log, 7, 0)
    with pytest.raises(OutOfOrderSequenceError):
        produce(log, 7, 1, epoch=1)
    produce(log, 7, 0, epoch=1)
    with pytest.raises(ProducerFencedError):
        produce(log, 7, 1, epoch=0)


def test_replicated_batches_are_taken_as_they_are(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for offset, (epoch, sequence) in enumerate([(1, 0), (1, 5), (0, 3)]):
        batch = make_batch(base_offset=offset, producer=ProducerInfo(7, epoch, sequence))
        log.append_as_follower(bytes(batch))
    assert log.end_offset == 3


def test_idle_producers_expire_but_not_within_a_transaction(tmp_path: Path) -> None:
    clock = ManualClock()
    log = open_log(tmp_path, clock=clock)
    produce(log, 7, 0)
    produce(log, 8, 0, transactional=True)
    clock.advance(8 * 24 * 60 * 60 * 1000)
    log.remove_expired_producers()
    assert sorted(log.producers.producers) == [8]


# Snapshots


def test_snapshot_has_kafkas_bytes() -> None:
    entry = ProducerEntry(7, 2, 3, 1000, -1, [BatchSpan(4, 50, 2, 1000)])
    data = encode_snapshot([entry])
    assert data[:2] == b"\x00\x01"
    assert data[6:] == bytes.fromhex(
        "00000001 0000000000000007 0002 00000004 0000000000000032 00000002"
        " 00000000000003e8 00000003 ffffffffffffffff"
    )
    (decoded,) = decode_snapshot(data)
    assert encode_snapshot([decoded]) == data


@pytest.mark.parametrize("damage", ["short", "flipped", "version", "long"])
def test_damaged_snapshot_is_refused(damage: str) -> None:
    data = bytearray(encode_snapshot([ProducerEntry(7, 2)]))
    if damage == "short":
        del data[-1:]
    elif damage == "flipped":
        data[20] ^= 1
    elif damage == "version":
        data[1] = 9
    else:
        data += b"x"
    with pytest.raises(CorruptSnapshotError):
        decode_snapshot(bytes(data))


@pytest.mark.parametrize("clean", [True, False])
def test_producers_are_known_after_a_restart(tmp_path: Path, clean: bool) -> None:
    config = LogConfig(segment_bytes=300)
    log = open_log(tmp_path, config)
    for sequence in range(20):
        produce(log, 7, sequence)
    if clean:
        log.close()
        assert (log.directory / "00000000000000000020.snapshot").exists()
    reopened = open_log(tmp_path, config, clean=clean)
    assert produce(reopened, 7, 19).is_duplicate
    with pytest.raises(OutOfOrderSequenceError):
        produce(reopened, 7, 21)
    assert produce(reopened, 7, 20).first_offset == 20


def test_damaged_snapshot_is_replaced_by_reading_the_log(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for sequence in range(3):
        produce(log, 7, sequence)
    log.close()
    (log.directory / "00000000000000000003.snapshot").write_bytes(b"garbage")
    reopened = open_log(tmp_path)
    assert produce(reopened, 7, 2).is_duplicate


def test_snapshots_are_written_at_each_roll_and_old_ones_removed(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=200))
    for sequence in range(8):
        produce(log, 7, sequence)
    names = sorted(path.name for path in log.directory.glob("*.snapshot"))
    assert names == [f"{segment.base_offset:020d}.snapshot" for segment in log.segments][1:]
    log.flush()
    log.remove_old_snapshots()
    assert len(list(log.directory.glob("*.snapshot"))) == 2


def test_truncation_takes_producers_back(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=300))
    for sequence in range(10):
        produce(log, 7, sequence)
    log.truncate_to(4)
    with pytest.raises(OutOfOrderSequenceError):
        produce(log, 7, 5)
    assert produce(log, 7, 4).first_offset == 4


# Transactions


def test_last_stable_offset_waits_for_the_end_of_transactions(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    produce(log, 1, 0)
    produce(log, 7, 0, transactional=True)
    produce(log, 8, 0, transactional=True)
    log.update_high_watermark(3)
    assert log.last_stable_offset == 1
    end(log, 7, ControlType.COMMIT)
    log.update_high_watermark(3)
    assert log.last_stable_offset == 1, "the marker is not replicated yet"
    log.update_high_watermark(4)
    assert log.last_stable_offset == 2
    end(log, 8, ControlType.ABORT)
    log.update_high_watermark(5)
    assert log.last_stable_offset == 5


def test_committed_reads_end_at_the_last_stable_offset_and_name_aborted_ones(
    tmp_path: Path,
) -> None:
    log = open_log(tmp_path)
    produce(log, 7, 0, transactional=True)
    produce(log, 8, 0, transactional=True)
    end(log, 7, ControlType.ABORT)
    produce(log, 7, 1, transactional=True)
    log.update_high_watermark(log.end_offset)
    read = log.read(0, 1 << 20, ReadIsolation.COMMITTED)
    assert read.last_stable_offset == 1
    assert [(txn.producer_id, txn.first_offset) for txn in read.aborted or []] == [(7, 0)]
    assert log.read(0, 1 << 20).aborted is None
    assert log.read(1, 1 << 20, ReadIsolation.COMMITTED).aborted == []


@pytest.mark.parametrize("clean", [True, False])
def test_transactions_are_known_after_a_restart(tmp_path: Path, clean: bool) -> None:
    config = LogConfig(segment_bytes=200)
    log = open_log(tmp_path, config)
    for producer_id in (7, 8, 9):
        produce(log, producer_id, 0, transactional=True)
    end(log, 8, ControlType.ABORT)
    end(log, 9, ControlType.COMMIT)
    if clean:
        log.close()
    reopened = open_log(tmp_path, config, clean=clean)
    reopened.update_high_watermark(reopened.end_offset)
    assert reopened.last_stable_offset == 0
    assert [txn[:3] for txn in reopened.aborted_transactions(0, 99)] == [(8, 1, 3)]
    end(reopened, 7, ControlType.ABORT)
    reopened.update_high_watermark(reopened.end_offset)
    assert reopened.last_stable_offset == reopened.end_offset
    assert [txn[0] for txn in reopened.aborted_transactions(0, 99)] == [8, 7]


def test_lost_transaction_index_is_rebuilt_after_a_crash(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    produce(log, 7, 0, transactional=True)
    end(log, 7, ControlType.ABORT)
    index = log.directory / "00000000000000000000.txnindex"
    expected = index.read_bytes()
    index.unlink()
    open_log(tmp_path)
    assert index.read_bytes() == expected


def test_markers_of_a_replaced_coordinator_are_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    produce(log, 7, 0, transactional=True)
    end(log, 7, ControlType.COMMIT, coordinator_epoch=5)
    produce(log, 7, 1, transactional=True)
    with pytest.raises(TransactionCoordinatorFencedError):
        end(log, 7, ControlType.COMMIT, coordinator_epoch=4)


def test_a_write_outside_the_open_transaction_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    produce(log, 7, 0, transactional=True)
    with pytest.raises(InvalidTransactionStateError):
        produce(log, 7, 1)


def test_a_marker_alone_is_a_transaction_of_its_own(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    end(log, 7, ControlType.ABORT)
    log.update_high_watermark(1)
    assert log.last_stable_offset == 1
    assert [txn[:3] for txn in log.aborted_transactions(0, 9)] == [(7, 0, 0)]


def test_environment_sets_the_expiration(tmp_path: Path) -> None:
    clock = ManualClock()
    log = Log(Environment(clock=clock, producer_expiration_ms=1000), tmp_path / "t-0", LogConfig())
    produce(log, 7, 0)
    clock.advance(999)
    log.remove_expired_producers()
    assert 7 in log.producers.producers
    clock.advance(1)
    log.remove_expired_producers()
    assert 7 not in log.producers.producers
