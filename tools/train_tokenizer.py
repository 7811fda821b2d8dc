"""Train the byte-level BPE that the duplicate search counts tokens with, and write it into `dedup/`.

    python tools/train_tokenizer.py                      # download the pinned wheels, train, write dedup/tokenizer.json
    python tools/train_tokenizer.py --sources DIR ...    # train on the .py files below DIR instead, without network

The same files give the same bytes, whatever the number of threads and the hash seed (tests/dedup/test_training.py).
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tools" / "tokenizer-corpus.txt"
OUTPUT = ROOT / "dedup" / "tokenizer.json"
VOCAB_SIZE = 8_192  # docs/adr/0003: measured against 4,096 and 16,384
MIN_FREQUENCY = 2  # a pair seen once says nothing about code in general (the trainer's customary lower limit)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One training file."""

    name: str
    """Wheel and path inside it, or path below the source folder; files are trained in the order of names."""
    text: str
    """Its text."""


def read_wheels(folder: Path) -> list[SourceFile]:
    """Return the UTF-8 Python files of all wheels in a folder, sorted by name."""
    files = []
    for wheel in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                if member.endswith(".py"):
                    files += _decoded(f"{wheel.name}/{member}", archive.read(member))
    return sorted(files, key=lambda file: file.name)


def read_folder(folder: Path) -> list[SourceFile]:
    """Return the UTF-8 Python files below a folder, sorted by name."""
    files: list[SourceFile] = []
    for path in folder.rglob("*.py"):
        if path.is_file():
            files += _decoded(path.relative_to(folder).as_posix(), path.read_bytes())
    return sorted(files, key=lambda file: file.name)


def _decoded(name: str, content: bytes) -> list[SourceFile]:
    """Return the file as a list of one, or an empty list (and a note on stderr) when it is not UTF-8."""
    try:
        return [SourceFile(name, content.decode("utf-8"))]
    except UnicodeDecodeError:
        print(f"not UTF-8, left out: {name}", file=sys.stderr)
        return []


def train(texts: Sequence[str], vocab_size: int) -> Tokenizer:
    """Return a lossless byte-level BPE: all 256 bytes in the alphabet, no normaliser, no special tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=MIN_FREQUENCY,
        special_tokens=[],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer=trainer, length=len(texts))
    return tokenizer


def download(corpus: Path, folder: Path) -> None:
    """Download the wheels of a requirements file with hashes; pip refuses a file whose hash differs."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary", ":all:", "--require-hashes", "--dest", str(folder), "-r", str(corpus)]
    subprocess.run(command, check=True)


def describe(tokenizer_file: Path, tokenizer: Tokenizer, files: Sequence[SourceFile], corpus: Sequence[str]) -> str:
    """Return the metadata as JSON: what `dedup.tokens` checks at load and what a reader needs to train again."""
    digest = hashlib.sha256()
    for file in files:
        content = file.text.encode()
        digest.update(f"{file.name}\0{len(content)}\0".encode())
        digest.update(content)
    meta = {
        "sha256": hashlib.sha256(tokenizer_file.read_bytes()).hexdigest(),
        "vocab_size": tokenizer.get_vocab_size(),
        "min_frequency": MIN_FREQUENCY,
        "tokenizers_version": version("tokenizers"),
        "corpus_files": len(files),
        "corpus_bytes": sum(len(file.text.encode()) for file in files),
        "corpus_sha256": digest.hexdigest(),
        "corpus": list(corpus),
    }
    return json.dumps(meta, indent=2) + "\n"


def pinned(corpus: Path) -> list[str]:
    """Return the requirements of a corpus list, one string each: name, version and hash; comments left out."""
    text = corpus.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = (" ".join(line.split()) for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, write the tokenizer and its metadata, and say what was trained on."""
    parser = argparse.ArgumentParser(description="Train the tokenizer of the duplicate search.")
    parser.add_argument("--sources", type=Path, help="train on the .py files below this folder, without network")
    parser.add_argument("--wheels", type=Path, help="train on wheels already downloaded into this folder")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--vocab-size", type=int, default=VOCAB_SIZE)
    options = parser.parse_args(arguments)
    if options.sources is not None:
        corpus, files = [], read_folder(options.sources)
    elif options.wheels is not None:
        corpus, files = pinned(CORPUS), read_wheels(options.wheels)
    else:
        with tempfile.TemporaryDirectory() as folder:
            download(CORPUS, Path(folder))
            corpus, files = pinned(CORPUS), read_wheels(Path(folder))
    if not files:
        print("no Python files to train on", file=sys.stderr)
        return 2
    tokenizer = train([file.text for file in files], options.vocab_size)
    tokenizer.save(str(options.output), pretty=False)
    meta = options.output.with_suffix(".meta.json")
    meta.write_text(describe(options.output, tokenizer, files, corpus), encoding="utf-8")
    print(f"{options.output}: {tokenizer.get_vocab_size()} tokens from {len(files)} files; details in {meta}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
