"""Training is deterministic: the same files give the same bytes in every process."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "train_tokenizer.py"
MODULES = ("argparse", "ast", "calendar", "csv", "difflib", "fractions", "inspect", "pickle", "socket", "typing")
VOCAB_SIZE = 1_000


def train(sources: Path, output: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOOL), "--sources", str(sources), "--output", str(output)]
    command += ["--vocab-size", str(VOCAB_SIZE)]
    return subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "sources"
    (folder / "package").mkdir(parents=True)
    for name in MODULES:
        shutil.copy(Path(sysconfig.get_path("stdlib")) / f"{name}.py", folder / "package")
    return folder


def test_threads_and_hash_seed_do_not_change_a_byte(sources: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one" / "tokenizer.json", tmp_path / "other" / "tokenizer.json"
    one.parent.mkdir()
    other.parent.mkdir()
    runs = [
        train(sources, one, PYTHONHASHSEED="1", TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1"),
        train(sources, other, PYTHONHASHSEED="2", TOKENIZERS_PARALLELISM="true", RAYON_NUM_THREADS="4"),
    ]
    assert [run.returncode for run in runs] == [0, 0]
    assert one.read_bytes() == other.read_bytes()
    meta = one.with_suffix(".meta.json").read_bytes()
    assert meta == other.with_suffix(".meta.json").read_bytes()
    described = json.loads(meta)
    assert described["vocab_size"] == VOCAB_SIZE
    assert described["corpus_files"] == len(MODULES)
    assert described["corpus"] == []


def test_file_that_is_not_utf8_is_left_out_with_a_note(sources: Path, tmp_path: Path) -> None:
    (sources / "latin.py").write_bytes("# -*- coding: latin-1 -*-\nname = 'caf\xe9'\n".encode("latin-1"))
    run = train(sources, tmp_path / "tokenizer.json")
    assert run.returncode == 0
    assert run.stderr == "not UTF-8, left out: latin.py\n"
    assert json.loads((tmp_path / "tokenizer.meta.json").read_text())["corpus_files"] == len(MODULES)


def test_folder_without_python_files_is_an_error(tmp_path: Path) -> None:
    run = train(tmp_path, tmp_path / "tokenizer.json")
    assert (run.returncode, run.stderr) == (2, "no Python files to train on\n")
    assert not (tmp_path / "tokenizer.json").exists()
