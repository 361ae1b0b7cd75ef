"""Checkpoint files and meta.properties, in Kafka's format."""

from pathlib import Path

import pytest

from storage.checkpoint import read_epochs, read_offsets, write_epochs, write_offsets
from storage.errors import CorruptCheckpointError
from storage.faulty_files import Fault, FaultyFiles
from storage.files import Files
from storage.meta_properties import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)


def test_offset_checkpoint_has_kafkas_text(tmp_path: Path) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    offsets = {("events", 0): 17, ("__consumer_offsets", 49): 0}
    write_offsets(Files(), path, offsets)
    assert path.read_text() == "0\n2\nevents 0 17\n__consumer_offsets 49 0\n"
    assert read_offsets(Files(), path) == offsets


def test_missing_and_empty_checkpoints_have_no_entries(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    assert read_offsets(Files(), path) == {}
    path.write_text("")
    assert read_offsets(Files(), path) == {}


@pytest.mark.parametrize(
    "text", ["1\n0\n", "0\n2\nevents 0 17\n", "0\n1\nevents 0\n", "0\n1\nevents zero 1\n", "x"]
)
def test_malformed_checkpoint_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "checkpoint"
    path.write_text(text)
    with pytest.raises(CorruptCheckpointError):
        read_offsets(Files(), path)


def test_failed_write_leaves_the_old_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    files = FaultyFiles()
    write_offsets(files, path, {("t", 0): 1})
    files.faults.append(Fault("sync"))
    with pytest.raises(OSError, match="Input/output"):
        write_offsets(files, path, {("t", 0): 2})
    assert read_offsets(files, path) == {("t", 0): 1}


def test_checkpoint_is_on_the_disk_before_it_gets_its_name(tmp_path: Path) -> None:
    files = FaultyFiles()
    write_offsets(files, tmp_path / "checkpoint", {("t", 0): 1})
    operations = [operation for operation, _ in files.calls]
    assert operations.index("sync") < operations.index("replace")
    assert files.calls[-1] == ("sync", str(tmp_path))


def test_epoch_checkpoint_has_kafkas_text(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    write_epochs(Files(), path, [(0, 0), (3, 120)], durable=True)
    assert path.read_text() == "0\n2\n0 0\n3 120\n"
    assert read_epochs(Files(), path) == [(0, 0), (3, 120)]


def test_meta_properties_survive_and_kafkas_own_are_read(tmp_path: Path) -> None:
    assert read_meta_properties(Files(), tmp_path) is None
    write_meta_properties(Files(), tmp_path, MetaProperties(3, "abc"))
    assert read_meta_properties(Files(), tmp_path) == MetaProperties(3, "abc")
    (tmp_path / "meta.properties").write_text(
        "#\n#Mon Jan 01 00:00:00 UTC 2020\ncluster.id=xyz\nversion=0\nbroker.id=7\n"
    )
    assert read_meta_properties(Files(), tmp_path) == MetaProperties(7, "xyz")


@pytest.mark.parametrize("text", ["version=1\nbroker.id=0\n", "version=0\n", "broker.id=a\n"])
def test_malformed_meta_properties_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "meta.properties").write_text(text)
    with pytest.raises(CorruptCheckpointError):
        read_meta_properties(Files(), tmp_path)
