"""Log lines as operators of Kafka know them: `[time] LEVEL message (logger)` on standard output."""

import logging
import os
import sys
import time
from typing import TextIO

LEVEL_VARIABLE = "BARNABAS_LOG_LEVEL"
LEVELS = ("DEBUG", "INFO", "WARN", "ERROR")

_SHOWN_LEVELS = {logging.WARNING: "WARN", logging.CRITICAL: "FATAL"}
_CHATTY_LIBRARIES = ("kazoo", "asyncio")
_SILENT_UNTIL_ASKED = "network.request"  # a line per request; kafka-configs can raise its level


class LineFormatter(logging.Formatter):
    """`[2026-11-18 00:31:02,123] INFO started (broker.server)`, in local time."""

    def __init__(self) -> None:
        super().__init__()
        self._second = -1
        self._second_text = ""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (logging's own name)
        second = int(record.created)
        if second != self._second:  # breaking a time down costs more than all the rest
            self._second = second
            self._second_text = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
        level = _SHOWN_LEVELS.get(record.levelno, record.levelname)
        moment = f"{self._second_text},{int(record.msecs):03d}"
        return f"[{moment}] {level} {record.message} ({record.name})"


def set_up_logging(level: str | None = None, stream: TextIO | None = None) -> None:
    """Send every log line of this process to one stream; the level comes from the caller, else
    from BARNABAS_LOG_LEVEL, else it is INFO."""
    wanted = (level or os.environ.get(LEVEL_VARIABLE) or "INFO").upper()
    threshold = logging.getLevelName("WARNING" if wanted == "WARN" else wanted)
    if not isinstance(threshold, int):
        threshold = logging.INFO
    handler = logging.StreamHandler(stream or sys.stdout)
    handler.setFormatter(LineFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(threshold)
    for name in _CHATTY_LIBRARIES:
        logging.getLogger(name).setLevel(max(threshold, logging.WARNING))
    logging.getLogger(_SILENT_UNTIL_ASKED).setLevel(logging.WARNING)
    _drop_what_the_lines_do_not_show()


def _drop_what_the_lines_do_not_show() -> None:
    """Looking up the calling line, thread and process is most of the cost of a log call."""
    logging._srcfile = None
    logging.logThreads = False
    logging.logProcesses = False
    logging.logMultiprocessing = False
    if sys.version_info >= (3, 12):
        logging.logAsyncioTasks = False
