"""The process that cleans logs: takes a job, answers with what it cleaned, waits for the next.

    python -m storage.compaction.worker

Jobs come through standard input, answers go to standard output (job.py). Owns the process: it
ends when standard input does, that is with the broker at the latest, and leaves the broker the
better half of the processor. Must not know logs beyond the files of its job.
"""

import errno
import os
import select
import signal
import time
import traceback
from typing import Final

from storage.compaction.cleaning import Cleaning
from storage.compaction.job import (
    MESSAGE_LENGTH,
    CleaningFailure,
    CleaningJob,
    WorkerMessage,
    decode_job,
    encode_message,
)
from storage.compaction.throttle import Throttle
from storage.environment import Environment
from storage.records.errors import RecordDataError

_NICENESS: Final = 5
_STANDARD_INPUT: Final = 0
_STANDARD_OUTPUT: Final = 1
_STANDARD_ERROR: Final = 2


class BrokerGone(BaseException):
    """There is nobody left to clean for."""


class Worker:
    """Answers one job after the other."""

    def __init__(self, jobs: int, answers: int) -> None:
        """Descriptors to read jobs from and to write answers to."""
        self._jobs = jobs
        self._answers = answers
        self._environment = Environment(clock=lambda: time.time_ns() // 1_000_000)

    def run(self) -> None:
        """Work until there is nobody to work for."""
        try:
            while True:
                self._clean(self._receive())
        except (BrokerGone, BrokenPipeError):
            return

    def _clean(self, job: CleaningJob) -> None:
        throttle = Throttle(job.bytes_per_second, wait=self._wait)

        def transferred(count: int) -> None:
            self._wait(0)
            throttle.transferred(count)

        try:
            cleaning = Cleaning(self._environment, job, transferred)
            for group in cleaning.run():
                self._send(group)
            answer: WorkerMessage = cleaning.summary
        except BrokenPipeError:
            raise
        except OSError as error:
            answer = CleaningFailure(str(error), error.errno)
        except MemoryError:
            answer = CleaningFailure("There is too little memory", errno.ENOMEM)
        except RecordDataError as error:
            answer = CleaningFailure(str(error), None)
        except Exception:
            answer = CleaningFailure(traceback.format_exc(), None)
        self._send(answer)

    def _wait(self, seconds: float) -> None:
        """Nothing is sent while a job is done: what can be read is the end of the pipe."""
        if select.select([self._jobs], [], [], seconds)[0]:
            raise BrokerGone

    def _receive(self) -> CleaningJob:
        (length,) = MESSAGE_LENGTH.unpack(self._read(MESSAGE_LENGTH.size))
        return decode_job(self._read(length))

    def _read(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            part = os.read(self._jobs, length - len(data))
            if not part:
                raise BrokerGone
            data += part
        return data

    def _send(self, message: WorkerMessage) -> None:
        data = encode_message(message)
        while data:
            data = data[os.write(self._answers, data) :]


def main() -> None:
    # Ctrl-C reaches all processes of a terminal; the broker decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICENESS)
    # Whatever prints must not speak to the broker.
    answers = os.dup(_STANDARD_OUTPUT)
    os.dup2(_STANDARD_ERROR, _STANDARD_OUTPUT)
    Worker(_STANDARD_INPUT, answers).run()


if __name__ == "__main__":
    main()
