"""A release with a row of real_code, and its page."""

from dataclasses import replace
from pathlib import Path

import pytest

from publishing.release import write_release
from schemas.arrow import to_table
from schemas.execution import RealCode
from tests.publishing.releases import make_inputs, points, real_code_row


@pytest.fixture(scope="package")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    inputs = make_inputs()
    tables = {**inputs.tables, "real_code": to_table([real_code_row(points()[0])], RealCode)}
    return write_release(replace(inputs, tables=tables), tmp_path_factory.mktemp("releases")).folder
