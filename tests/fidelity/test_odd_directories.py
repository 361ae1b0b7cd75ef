"""What Kafka makes of odd directories when it loads them, and what we make of them."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from storage.checkpoint import RECOVERY_POINT_CHECKPOINT, write_offsets
from storage.files import Files
from storage.log_manager import LogManager
from tests.fidelity.odd_directories import CONFIG, Replacement, epoch_checkpoints
from tests.fidelity.our_logs import NOW
from tests.support.apache_kafka import require_apache_kafka

STATES: Final = ("stopped", "crashed")
SETTINGS: Final = {
    "log.cleaner.enable": "false",
    "log.segment.bytes": str(CONFIG.segment_bytes),
    "log.index.interval.bytes": str(CONFIG.index_interval_bytes),
}
# What was removed goes later, and Kafka leaves indexes of a replacement that has no records.
IGNORED: Final = (".deleted", ".swap")
EPOCHS_LOST_IN_A_CRASH: Final = [f"crashed-epochs-{kind}-0" for kind in ("none", "empty", "late")]
WRITTEN_EPOCHS: Final = b"0\n3\n0 0\n1 64\n3 129\n"
EPOCHS: Final = "leader-epoch-checkpoint"


def write_directories(home: Path) -> None:
    """The same partitions twice: after a clean stop and after a crash."""
    template = home / "template"
    replacement = Replacement(template)
    source = template / "template-0"
    end_offset = max(int(path.stem) for path in source.glob("*.log"))
    for state in STATES:
        directory = home / state
        for name, change in replacement.directories():
            change(copied(source, directory, name))
        for name, content in epoch_checkpoints(end_offset):
            checkpoint = copied(source, directory, name) / EPOCHS
            checkpoint.unlink()
            if content is not None:
                checkpoint.write_text(content)
        recovery_point = end_offset if state == "stopped" else end_offset // 2
        partitions = [path.name.removesuffix("-0") for path in directory.iterdir()]
        offsets = {(topic, 0): recovery_point for topic in partitions}
        write_offsets(Files(), directory / RECOVERY_POINT_CHECKPOINT, offsets)
    (home / "stopped" / ".kafka_cleanshutdown").touch()
    shutil.rmtree(template)


def copied(source: Path, directory: Path, name: str) -> Path:
    target = directory / f"{directory.name}-{name}-0"
    shutil.copytree(source, target)
    return target


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directories `ours` and `kafkas`, each loaded and stopped cleanly."""
    kafka = require_apache_kafka("2.5.1")
    home = tmp_path_factory.mktemp("odd")
    ours, kafkas = home / "ours", home / "kafkas"
    write_directories(ours)
    shutil.copytree(ours, kafkas)
    manager = LogManager([ours / state for state in STATES], CONFIG, lambda: NOW)
    manager.load()
    manager.close()
    settings = {**SETTINGS, "log.dirs": ",".join(str(kafkas / state) for state in STATES)}
    with kafka.cluster(home / "kafka", settings) as broker:
        broker.stop()
    return home


def partitions_of(
    home: Path, state: str
) -> Iterator[tuple[str, dict[str, bytes], dict[str, bytes]]]:
    for path in sorted((home / "ours" / state).glob("*-0")):
        yield path.name, files_of(path), files_of(home / "kafkas" / state / path.name)


def files_of(directory: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in sorted(directory.iterdir())
        if path.suffix not in IGNORED and (path.name != EPOCHS or path.stat().st_size)
    }


@pytest.mark.parametrize("state", STATES)
def test_kafka_and_we_make_the_same_of_odd_directories(loaded: Path, state: str) -> None:
    seen = 0
    differing = {}
    for name, ours, kafkas in partitions_of(loaded, state):
        seen += 1
        if name in EPOCHS_LOST_IN_A_CRASH:
            # Kafka knows only what it finds behind the recovery point, we look into the rest.
            assert ours.pop(EPOCHS) == WRITTEN_EPOCHS
            del kafkas[EPOCHS]
        if found := differences(ours, kafkas):
            differing[name] = found
    assert differing == {}
    assert seen > 50


def differences(ours: dict[str, bytes], kafkas: dict[str, bytes]) -> dict[str, str]:
    names = {*ours, *kafkas}
    return {
        name: f"{ours.get(name)!r:.80} and {kafkas.get(name)!r:.80}"
        for name in sorted(names)
        if ours.get(name) != kafkas.get(name) and not is_left_empty(name, ours, kafkas)
    }


def is_left_empty(name: str, ours: dict[str, bytes], kafkas: dict[str, bytes]) -> bool:
    """Where nothing but the time index is missing, Kafka makes an empty one: it thinks of logs
    from before there were any. We fill it."""
    return name.endswith(".timeindex") and kafkas.get(name) == b"" != ours.get(name)
