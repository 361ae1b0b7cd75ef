"""Copies of partitions that Apache Kafka wrote, to damage and to audit."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from analytics.audit.audit import audit_here
from analytics.audit.faults import Fault
from analytics.logs.partitions import find_partitions
from storage.batch_scan import scan_headers
from storage.checkpoint import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from storage.files import Files

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
RELEASES = ("kafka-2.5.1", "kafka-3.9.1")
CHECKPOINTS = (CLEANER_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT, RECOVERY_POINT_CHECKPOINT)


def faults_in(log_dir: Path) -> list[Fault]:
    return audit_here(find_partitions(log_dir))


def told(faults: list[Fault]) -> list[tuple[str, int | None, str]]:
    return [(Path(fault.file).name, fault.position, fault.kind) for fault in faults]


def batch_positions(segment: Path) -> list[int]:
    descriptor = Files().open(segment, os.O_RDONLY)
    return [position for position, _ in scan_headers(descriptor, 0, segment.stat().st_size)]


class Copy:
    """One partition of the fixtures in a log directory of its own."""

    def __init__(self, log_dir: Path, partition: str, release: str = RELEASES[0]) -> None:
        source = FIXTURES / release / "data"
        self.log_dir = log_dir
        self.partition = log_dir / partition
        shutil.copytree(source / partition, self.partition)
        for name in CHECKPOINTS:
            shutil.copy(source / name, log_dir / name)

    def files(self, suffix: str) -> list[Path]:
        return sorted(self.partition.glob(f"*{suffix}"))

    def faults(self) -> list[Fault]:
        return faults_in(self.log_dir)

    def changed(self, file: Path, change: Callable[[bytearray], object]) -> list[Fault]:
        """The faults while a file is changed; it is mended again."""
        good = file.read_bytes()
        data = bytearray(good)
        change(data)
        file.write_bytes(data)
        try:
            return self.faults()
        finally:
            file.write_bytes(good)

    def flipped(self, file: Path, position: int) -> list[Fault]:
        def flip(data: bytearray) -> None:
            data[position] ^= 0x21

        return self.changed(file, flip)
