"""Loads a published version as a user would, in a process with an empty cache, and compares it with the folder."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from publishing.header import CARD_NAME, SPLIT
from publishing.release_files import ReleaseFiles, read_release_files
from publishing.withdrawn import split_card
from schemas.errors import ConfigError, PipelineError
from warehouse.tables import file_entry, read_table

if TYPE_CHECKING:
    from datasets import Dataset

_SETTINGS = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_CACHE", "HF_DATASETS_CACHE")


@dataclass(frozen=True, slots=True)
class ReadBack:
    """What was read back and found equal."""

    rows: dict[str, int]
    """Rows of every config that was loaded."""
    files: int
    """Files whose hashes were compared."""


def check_datasets() -> None:
    """Raise ConfigError when what reading back needs is not installed."""
    if find_spec("datasets") is None:
        raise ConfigError("reading back needs the extra hub: pip install -e '.[hub]', or push with --no-read-back")


def read_back(release: ReleaseFiles, repo: str, revision: str) -> ReadBack:
    """Load every config of a revision with `load_dataset` and compare rows and files with the release's.

    In a process of its own, lest a cache or a setting of this one answers in place of the Hub. PipelineError when
    something differs or cannot be loaded: what is published has to be looked at.
    """
    from huggingface_hub import get_token

    with TemporaryDirectory(prefix="postquem-") as home:
        env = {name: value for name, value in os.environ.items() if name not in _SETTINGS}
        env |= {"HF_HOME": home, "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
        if (token := get_token()) is not None:
            env["HF_TOKEN"] = token
        command = [sys.executable, "-m", __name__, str(release.folder.resolve()), repo, revision]
        ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        last = (ended.stderr.strip() or "it died without a word").splitlines()[-1]
        raise PipelineError(f"{repo} has revision {revision}, but it could not be read back: {last}")
    found = json.loads(ended.stdout)
    if found["faults"]:
        raise PipelineError(
            f"revision {revision} of {repo} is not what was pushed: {'; '.join(found['faults'])}. Withdraw it with "
            "`postquem release yank`, and push a new version"
        )
    return ReadBack(found["rows"], found["files"])


def _compare(release: ReleaseFiles, repo: str, revision: str) -> dict[str, Any]:
    """Return the rows loaded, the files compared and what differs."""
    from datasets import load_dataset

    rows: dict[str, int] = {}
    faults: list[str] = []
    for name, count in release.rows.items():
        if count:
            loaded = load_dataset(repo, name, split=SPLIT, revision=revision)
            rows[name] = loaded.num_rows
            faults += _row_faults(release, name, loaded)
    faults += _file_faults(release, repo, revision)
    return {"rows": rows, "files": len(release.files), "faults": faults}


def _row_faults(release: ReleaseFiles, name: str, loaded: "Dataset") -> Iterator[str]:
    """Yield how a loaded config differs from its shards."""
    from datasets import Features

    if loaded.num_rows != release.rows[name]:
        yield f"{name} loads {loaded.num_rows:,} rows instead of {release.rows[name]:,}"
        return
    at = 0
    for entry in release.files:
        if entry.path.startswith(f"{name}/"):
            shard = read_table(release.folder / entry.path)
            part = loaded.data.table.slice(at, shard.num_rows)
            same_types = loaded.features == Features.from_arrow_schema(shard.schema)
            if not same_types or not part.equals(shard.cast(part.schema)):
                yield f"{entry.path} loads other rows"
            at += shard.num_rows


def _file_faults(release: ReleaseFiles, repo: str, revision: str) -> Iterator[str]:
    """Yield the files with other bytes; what the loading fetched is not fetched again."""
    from huggingface_hub import hf_hub_download

    for entry in release.files:
        path = Path(hf_hub_download(repo, entry.path, revision=revision, repo_type="dataset"))
        if entry.path == CARD_NAME:
            same = split_card(path.read_bytes().decode("utf-8"))[0] == release.card()
        else:
            same = file_entry(path, path.parent).sha256 == entry.sha256
        if not same:
            yield f"{entry.path} has other bytes"


if __name__ == "__main__":
    folder, repo_id, tag = sys.argv[1:]
    print(json.dumps(_compare(read_release_files(Path(folder)), repo_id, tag)))
