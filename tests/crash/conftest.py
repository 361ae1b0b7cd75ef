"""Logs that all damage tests copy."""

import pytest

from tests.crash.damage import Template, make_template


@pytest.fixture(scope="package")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return make_template(tmp_path_factory.mktemp("template"))
