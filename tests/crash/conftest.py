"""Logs that all damage tests copy."""

from collections.abc import Iterator

import pytest

from tests.crash.damage import Template, make_template


@pytest.fixture(scope="package")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return make_template(tmp_path_factory.mktemp("template"))


@pytest.fixture
def forgetful_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Have messages shown, but not kept: with them pytest keeps errors, with these the files of
    all managers that failed, thousands in a soak."""

    def keeps_nothing(_: object) -> bool:
        return False

    caplog.handler.addFilter(keeps_nothing)
    yield
    caplog.handler.removeFilter(keeps_nothing)
