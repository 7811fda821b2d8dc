"""Releases to push, and the real clients pointed at a loopback Hub."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import huggingface_hub.constants
import pytest

from publishing.release import write_release
from publishing.release_files import ReleaseFiles, read_release_files
from schemas.records import DataPoint
from tests.hub.server import Hub, running_hub
from tests.publishing.releases import make_inputs, points, with_release

REPO = "me/shapes"


def make_release(folder: Path, version: str = "2026.10", rows: list[DataPoint] | None = None) -> ReleaseFiles:
    """Write a small release of two testbeds and read it."""
    inputs = make_inputs(points() if rows is None else rows, config=with_release(version=version))
    tables = {name: inputs.tables[name] for name in ("raw_data", "random_cut")}
    return read_release_files(write_release(replace(inputs, tables=tables), folder).folder)


@contextmanager
def client_of(
    home: Path, monkeypatch: pytest.MonkeyPatch, *, xet: bool = False, token: str | None = "hf_writer"
) -> Iterator[Hub]:
    """Run a Hub that this process's clients use; they read the environment when they are imported."""
    storage = home / "xet" if xet else None
    with running_hub(storage) as hub:
        environment = {"HF_ENDPOINT": hub.url, "HF_HUB_DISABLE_XET": "0" if xet else "1", "HF_HOME": str(home / "hf")}
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        if token is not None:
            monkeypatch.setenv("HF_TOKEN", token)
        constants = huggingface_hub.constants
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        template = f"{hub.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", not xet)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(home / "hf" / "token"))
        yield hub
