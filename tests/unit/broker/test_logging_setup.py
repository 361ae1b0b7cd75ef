import io
import logging
import re
from collections.abc import Iterator

import pytest

from broker.logging_setup import set_up_logging


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    """Logging is global to the process: leave it as it was found."""
    root = logging.getLogger()
    before = (root.level, root.handlers[:], logging._srcfile)
    libraries = {name: logging.getLogger(name).level for name in ("kazoo", "asyncio")}
    flags = (logging.logThreads, logging.logProcesses, logging.logMultiprocessing)
    yield
    root.setLevel(before[0])
    root.handlers[:] = before[1]
    logging._srcfile = before[2]
    logging.logThreads, logging.logProcesses, logging.logMultiprocessing = flags
    for name, level in libraries.items():
        logging.getLogger(name).setLevel(level)


def logged(level: str | None, emit_level: int, message: str = "x", logger: str = "a.b") -> str:
    stream = io.StringIO()
    set_up_logging(level, stream)
    logging.getLogger(logger).log(emit_level, message)
    return stream.getvalue()


def test_a_line_looks_like_one_of_kafkas() -> None:
    line = logged(None, logging.INFO, "[broker 0] started", "broker.server")
    pattern = (
        r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] INFO \[broker 0\] started \(broker\.server\)"
    )
    assert re.fullmatch(pattern + "\n", line)


@pytest.mark.parametrize(
    ("level", "word"), [(logging.WARNING, "WARN"), (logging.CRITICAL, "FATAL")]
)
def test_levels_have_kafkas_names(level: int, word: str) -> None:
    assert f"] {word} x (a.b)" in logged(None, level)


def test_the_level_comes_from_the_caller_then_the_environment_then_is_info(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert logged(None, logging.DEBUG) == ""
    monkeypatch.setenv("BARNABAS_LOG_LEVEL", "debug")
    assert logged(None, logging.DEBUG) != ""
    assert logged("WARN", logging.INFO) == ""
    assert logged("WARN", logging.WARNING) != ""


def test_a_level_that_is_none_leaves_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BARNABAS_LOG_LEVEL", "loud")
    assert logged(None, logging.INFO) != ""


def test_libraries_speak_only_of_trouble() -> None:
    assert logged("INFO", logging.INFO, logger="kazoo.client") == ""
    assert logged("INFO", logging.WARNING, logger="kazoo.client") != ""


def test_an_exception_follows_its_line() -> None:
    stream = io.StringIO()
    set_up_logging(None, stream)
    try:
        raise ValueError("odd")
    except ValueError:
        logging.getLogger("a").exception("failed")
    first, *rest = stream.getvalue().splitlines()
    assert first.endswith("ERROR failed (a)")
    assert rest[0].startswith("Traceback")
    assert rest[-1] == "ValueError: odd"
