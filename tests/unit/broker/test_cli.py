"""The command line in a process of its own, as its users run it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SPARKS_OWN = ("pyspark", "pyarrow", "numpy", "analytics")
PROJECT = Path(__file__).resolve().parents[3]


def barnabas(
    *arguments: str | Path, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}
    return subprocess.run(
        [sys.executable, "-m", "broker", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=cwd,
        env={**kept, "PYTHONPATH": str(PROJECT), **environment},
    )


def test_version_is_shown() -> None:
    finished = barnabas("--version")
    assert finished.returncode == 0
    assert finished.stdout.startswith("barnabas ")


@pytest.mark.parametrize(
    "command", [(), ("broker",), ("config",), ("analyze",), ("spark-archive",)]
)
def test_help_is_shown(command: tuple[str, ...]) -> None:
    finished = barnabas(*command, "--help")
    assert finished.returncode == 0
    assert finished.stdout.startswith(" ".join(["usage: barnabas", *command]))


def test_no_command_is_a_usage_error() -> None:
    finished = barnabas()
    assert finished.returncode == 2
    assert "usage: barnabas" in finished.stderr


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--override", "num.io.threads=0"), "num.io.threads: 0: must be at least 1"),
        (("--override", "nonsense"), "--override: nonsense: use the form"),
        (("absent.properties",), "absent.properties: cannot be read"),
    ],
)
def test_a_wrong_setting_is_one_line_and_status_1(
    arguments: tuple[str, ...], line: str, tmp_path: Path
) -> None:
    finished = barnabas("broker", *arguments, cwd=tmp_path)
    assert finished.returncode == 1
    assert finished.stdout == ""
    assert finished.stderr.startswith(line)
    assert finished.stderr.count("\n") == 1


def test_an_environment_variable_is_named_when_it_is_wrong(tmp_path: Path) -> None:
    finished = barnabas("broker", cwd=tmp_path, KAFKA_NUM_IO_THREADS="0")
    assert finished.stderr.endswith("(environment variable KAFKA_NUM_IO_THREADS)\n")


def test_the_projects_own_file_is_read_when_its_script_runs_the_command(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "server.properties").write_text("broker.id=many\n")
    finished = barnabas("broker", cwd=tmp_path, BARNABAS_HOME=str(tmp_path))
    assert finished.stderr.startswith("broker.id: many: must be a whole number")
    assert finished.stderr.endswith("(config/server.properties, line 1)\n")


def test_neither_help_nor_settings_nor_the_server_import_what_only_spark_needs() -> None:
    program = (
        "import sys; from broker.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "import broker.server, broker.java\n"
        f"print('loaded:', [m for m in {SPARKS_OWN!r} if m in sys.modules])\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, cwd=PROJECT
    )
    assert finished.stdout.endswith("loaded: []\n"), finished.stderr
