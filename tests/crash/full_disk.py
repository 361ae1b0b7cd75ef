"""A real disk that is full: a small file system of its own, written to until nothing fits.

    python -m tests.crash.full_disk DIRECTORY

Owns the process that runs where the small file system is mounted, which nobody else sees. Logs
are written to until the disk refuses, opened again while it is full, checked, and written to
after space has been made. Exits with 0 if all went well.
"""

import shutil
import sys
from pathlib import Path
from random import Random
from typing import Final

from storage.errors import LogDirectoryError
from storage.log_manager import LogManager
from tests.crash.appending import append_to
from tests.crash.damage import open_logs, reopened
from tests.crash.inspection import check_logs
from tests.crash.journal import Acknowledged, Append, JournalContent
from tests.crash.killing import close_what_crashed, crash
from tests.crash.model import Model
from tests.crash.workload import PARTITIONS, Workload, config_of

_ROUNDS: Final = 2
# So much of the space is taken away at first, and given back later.
_BALLAST_SHARE: Final = 0.75
_APPENDS_AFTERWARDS: Final = 30
_PATIENCE: Final = 100_000


def main() -> None:
    directory = Path(sys.argv[1])
    for seed in range(_ROUNDS):
        root = directory / str(seed)
        root.mkdir()
        survive_a_full_disk(root, Random(seed))
        shutil.rmtree(root)
        close_what_crashed()  # files that are held open take space although they are removed


def survive_a_full_disk(root: Path, random: Random) -> None:
    ballast = root / "ballast"
    ballast.write_bytes(bytes(int(shutil.disk_usage(root).free * _BALLAST_SHARE)))
    model = Model()
    logs = open_logs(root)
    written = write(logs, Workload(random), _PATIENCE, leader_epoch=1)
    assert not logs.live_directories, "the disk never became full"
    model.acknowledge(written)
    for _ in range(2):
        check_logs(reopened(root), model, written.unresolved, random)
    ballast.unlink()
    logs = open_logs(root)
    workload = Workload(random, 1_000_000, model.producers())
    more = write(logs, workload, _APPENDS_AFTERWARDS, leader_epoch=2)
    assert more.unresolved == []
    model.acknowledge(more)
    logs.close()
    check_logs(reopened(root), model, [], random)
    print(f"{len(written.acknowledged)} appends until the disk was full")


def write(logs: LogManager, workload: Workload, appends: int, leader_epoch: int) -> JournalContent:
    """Append so many times, or until every directory has gone offline."""
    acknowledged: list[Acknowledged] = []
    unresolved: list[Append] = []
    try:
        partitions = [logs.get_or_create(*key, config_of(key[0])) for key in PARTITIONS]
        for number in range(appends):
            if number % 50 == 0:
                logs.flush_due()
                logs.checkpoint_recovery_points()
            append = workload.next_append([log.end_offset for log in partitions])
            log = partitions[append.place]
            if log.is_offline:
                if not logs.live_directories:
                    break
                continue
            unresolved.append(append)
            try:
                acknowledged.append(append_to(log, append, leader_epoch))
            except LogDirectoryError:
                continue
            unresolved.pop()
    finally:
        crash(logs)
    return JournalContent(acknowledged, unresolved)


if __name__ == "__main__":
    main()
