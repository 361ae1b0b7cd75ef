"""Real brokers for tests: processes on free loopback ports, with data in a directory of their own.

Whoever starts one ends it; `running_broker` does both.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

PROJECT = Path(__file__).parents[2]
START_TIMEOUT_SECONDS = 60.0
STOP_TIMEOUT_SECONDS = 30.0
STARTED = re.compile(r"started \(broker\.server\)$")
LISTENING = re.compile(r"Awaiting socket connections on \S+:(\d+)\.")


class BrokerFailed(AssertionError):
    """A broker did not do what it was started for; carries what it printed."""


class BrokerProcess:
    """`barnabas broker` in a process of its own."""

    def __init__(
        self,
        data: Path,
        overrides: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.data = data
        self.lines: list[str] = []
        self.port = 0
        self._overrides = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "broker.id": "0",
            "log.dirs": str(data),
            "offsets.topic.replication.factor": "1",
            **(overrides or {}),
        }
        self._environment = dict(environment or os.environ)
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._changed = threading.Condition()

    def __enter__(self) -> "BrokerProcess":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def start(self) -> None:
        """Start it and wait until it serves."""
        self.launch()
        self.wait_for_line(STARTED)
        self.port = int(self.wait_for_line(LISTENING).group(1))

    def launch(self) -> None:
        """Start it and do not wait."""
        self.lines = []
        command: Sequence[str] = [sys.executable, "-m", "broker", "broker"]
        for name, value in self._overrides.items():
            command = [*command, "--override", f"{name}={value}"]
        self._process = subprocess.Popen(
            command,
            cwd=PROJECT,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read_output, daemon=True)
        self._reader.start()

    def wait_for_line(
        self, pattern: re.Pattern[str], timeout: float = START_TIMEOUT_SECONDS
    ) -> re.Match[str]:
        """The first line that the pattern is found in, as soon as there is one."""
        deadline = time.monotonic() + timeout
        seen = 0
        with self._changed:
            while True:
                for line in self.lines[seen:]:
                    if found := pattern.search(line):
                        return found
                seen = len(self.lines)
                if not self._is_reading() or time.monotonic() >= deadline:
                    raise BrokerFailed(f"no line has {pattern.pattern!r}:\n{self.output}")
                self._changed.wait(0.5)

    def stop(self) -> int:
        """End it as an operator does; the exit status."""
        self.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """End it as a crash does."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
        if self._process is not None:
            self.wait()

    def send_signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def wait(self, timeout: float = STOP_TIMEOUT_SECONDS) -> int:
        assert self._process is not None
        assert self._reader is not None
        try:
            status = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise BrokerFailed(f"the broker did not end:\n{self.output}") from None
        finally:
            self._reader.join(STOP_TIMEOUT_SECONDS)
            assert self._process.stdout is not None
            self._process.stdout.close()
        return status

    def _is_reading(self) -> bool:
        return self._reader is not None and self._reader.is_alive()

    def _read_output(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()


@contextmanager
def running_broker(
    data: Path, overrides: Mapping[str, str] | None = None
) -> Iterator[BrokerProcess]:
    """A broker that serves, and is ended whatever happens."""
    broker = BrokerProcess(data, overrides)
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()
