"""Logs that all damage tests copy."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tests.crash.damage import Template, make_template


@pytest.fixture(scope="package")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return make_template(tmp_path_factory.mktemp("template"))


@pytest.fixture(autouse=True)
def log_without_errors() -> Iterator[None]:
    """Have log records hold text only: pytest keeps them, they keep errors, and errors the files
    of all managers that failed, thousands in a soak."""
    make_record = logging.getLogRecordFactory()

    def make_text(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make_record(*args, **kwargs)
        record.msg, record.args, record.exc_info = record.getMessage(), (), None
        return record

    logging.setLogRecordFactory(make_text)
    yield
    logging.setLogRecordFactory(make_record)
