"""A manifest as plain values."""

from pathlib import Path

import pytest

from schemas.errors import ConfigError
from warehouse.manifests import read_values


def test_values_come_as_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text('{"version": "1", "rows": {"raw_data": 3}, "later": null}')
    assert read_values(path) == {"version": "1", "rows": {"raw_data": 3}, "later": None}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"is no release: manifest\.json cannot be read \(No such file or directory\)"),
        (b"{", r"manifest\.json is damaged \(Expecting property name"),
        (b"[1]", r"manifest\.json is damaged \(it holds no object\)"),
        (b"\xff\xfe{}", r"manifest\.json is damaged"),
    ],
)
def test_what_is_no_manifest_is_an_error(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "manifest.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        read_values(path)
