"""`barnabas config`, in a process of its own and by its parts."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from broker.config_command import markdown
from broker.settings import BROKER_SETTINGS
from tests.unit.broker.test_cli import PROJECT, barnabas


def rows(*arguments: str | Path, **environment: str) -> dict[str, list[str]]:
    finished = barnabas("config", *arguments, cwd=PROJECT, **environment)
    assert finished.returncode == 0, finished.stderr
    lines = [line.split("\t") for line in finished.stdout.splitlines()]
    assert lines[0] == ["NAME", "TYPE", "DEFAULT", "VALUE", "SOURCE"]
    return {line[0]: line[1:] for line in lines[1:]}


def test_every_setting_is_shown_with_type_default_value_and_source(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=4\nssl.key.password=hush\n")
    found = rows("--file", file, "--override", "log.segment.bytes=1000", KAFKA_NUM_IO_THREADS="9")
    assert list(found) == list(BROKER_SETTINGS)
    assert found["num.partitions"] == ["int", "1", "4", "file"]
    assert found["num.io.threads"] == ["int", "8", "9", "environment"]
    assert found["log.segment.bytes"] == ["int", "1073741824", "1000", "override"]
    assert found["log.roll.ms"] == ["long", "null", "null", "default"]
    assert found["ssl.key.password"] == ["password", "null", "[hidden]", "file"]


def test_a_terminal_gets_a_table() -> None:
    terminal, its_end = pty.openpty()
    command = [sys.executable, "-m", "broker", "config"]
    with subprocess.Popen(command, cwd=PROJECT, stdout=its_end, stderr=its_end) as process:
        os.close(its_end)
        shown = b""
        while True:
            try:
                data = os.read(terminal, 65536)
            except OSError:  # how Linux says that the other end is closed
                break
            if not data:
                break
            shown += data
    os.close(terminal)
    assert process.returncode == 0
    assert b"NAME" in shown
    assert b"num.io.threads" in shown
    assert b"\t" not in shown


def test_single_settings_are_explained() -> None:
    finished = barnabas("config", "log.retention.ms", "retention.ms", cwd=PROJECT)
    assert finished.returncode == 0
    broker_part, topic_part = finished.stdout.split("\n\n")
    assert broker_part.startswith("log.retention.ms\n  Age at which")
    assert "  for a topic:  retention.ms" in broker_part
    assert "  changes:      at run time, for a broker or for all" in broker_part
    assert "  default:      the broker's log.retention.ms" in topic_part


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("num.io.thread", "num.io.thread: unknown setting; did you mean num.io.threads?\n"),
        ("zzzz", "zzzz: unknown setting; `barnabas config` lists all\n"),
    ],
)
def test_an_unknown_name_is_one_line_and_status_1(name: str, told: str) -> None:
    finished = barnabas("config", name, cwd=PROJECT)
    assert (finished.returncode, finished.stdout, finished.stderr) == (1, "", told)


def test_a_wrong_value_is_one_line_and_status_1() -> None:
    finished = barnabas("config", "--override", "num.io.threads=0", cwd=PROJECT)
    assert finished.returncode == 1
    assert finished.stderr.startswith("num.io.threads: 0: must be at least 1")


def test_a_reader_that_has_seen_enough_is_no_failure() -> None:
    command = f"{sys.executable} -m broker config | head -1"
    finished = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=PROJECT, capture_output=True, text=True
    )
    assert finished.returncode == 0
    assert finished.stderr == ""


def test_the_documentation_is_current() -> None:
    remedy = "run: barnabas config --markdown > docs/configuration.md"
    assert (PROJECT / "docs" / "configuration.md").read_text() == markdown(), remedy
