"""Checkpoints that are written by two threads at the same time."""

from pathlib import Path
from threading import Thread

from storage.checkpoint import RECOVERY_POINT_CHECKPOINT, read_offsets
from storage.files import AnyPath, Files
from storage.log_config import LogConfig
from storage.log_manager import LogManager
from tests.unit.storage.support import ManualClock, append_values

BARELY_A_MOMENT = 0.2


class InterruptedFiles(Files):
    """Files that give another thread its turn in the middle of a checkpoint's replacement."""

    interruption: Thread | None = None

    def replace(self, source: AnyPath, target: AnyPath) -> None:
        thread, self.interruption = self.interruption, None
        if thread is not None:
            thread.start()
            # It must wait for us, so this ends by the clock.
            thread.join(BARELY_A_MOMENT)
        super().replace(source, target)


def test_two_threads_may_write_the_same_checkpoint(tmp_path: Path) -> None:
    files = InterruptedFiles()
    logs = LogManager([tmp_path], LogConfig(), ManualClock(), files)
    log = logs.get_or_create("t", 0)
    append_values(log, b"a", b"b", b"c")
    log.flush()

    def truncate() -> None:
        logs.truncate({("t", 0): 1})

    interruption = files.interruption = Thread(target=truncate)
    logs.checkpoint_recovery_points()
    interruption.join()
    assert logs.offline_directories == []
    path = tmp_path / RECOVERY_POINT_CHECKPOINT
    assert read_offsets(Files(), path) == {("t", 0): 1}
    logs.close()
