"""What computes a stage: digests of sources, versions of libraries; a change of either makes results stale."""

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from platform import python_version

_ROOT = Path(__file__).resolve().parent.parent
_DEDUP_LIBRARIES = ("tree-sitter", "tree-sitter-python", "tokenizers", "scipy", "numpy", "numba")
# Libraries whose version can change what a stage computes; a new version makes its results stale.
_STAGE_LIBRARIES = {
    "mine": ("tree-sitter", "tree-sitter-python", "identify", "packaging"),
    "features": ("tree-sitter", "tree-sitter-python", "py3langid"),
    "cutoff": ("tree-sitter", "tree-sitter-python"),
    "opt_out": (),
    "tokens": ("tree-sitter", "tree-sitter-python", "tokenizers"),
    "compare": _DEDUP_LIBRARIES,
    "references": ("tree-sitter", "tree-sitter-python", "pyarrow"),
    "dedup": _DEDUP_LIBRARIES,
    "real_code": ("tree-sitter", "tree-sitter-python", "packaging", "uv"),
    "testbeds": ("tree-sitter", "tree-sitter-python"),
    "score": ("tree-sitter", "tree-sitter-python", "packaging", "uv"),
}
_STAGE_PACKAGES = {
    "mine": ("schemas", "miners"),
    "features": ("schemas", "miners", "features"),
    "cutoff": ("schemas", "miners", "features"),
    "opt_out": ("schemas", "miners"),
    "tokens": ("schemas", "miners", "features", "dedup"),
    "compare": ("schemas", "miners", "features", "dedup"),
    "references": ("schemas", "miners", "features", "dedup"),
    "dedup": ("schemas", "miners", "features", "dedup"),
    "real_code": ("schemas", "miners", "features", "sandbox", "testbeds"),
    "testbeds": ("schemas", "miners", "features", "testbeds"),
    "score": ("schemas", "miners", "features", "sandbox", "scoring"),
}
_ALL_PACKAGES = ("schemas", "miners", "features", "dedup", "sandbox", "testbeds", "warehouse", "publishing")


def stage_version(stage: str) -> str:
    """Return what computes a stage: digest of its sources, versions of its libraries and of Python."""
    libraries = [f"{name} {version(name)}" for name in _STAGE_LIBRARIES[stage]]
    return "; ".join([_digest_sources(_STAGE_PACKAGES[stage]), *libraries, f"python {python_version()}"])


def code_version() -> str:
    """Return the version of Postquem with the digest of its sources, such as 0.1.0+3f2a9c1b."""
    return f"{version('postquem')}+{_digest_sources(_ALL_PACKAGES)[:8]}"


@cache
def _digest_sources(packages: Sequence[str]) -> str:
    """Return the sha256 of the packages' source and data files; a changed helper makes results stale."""
    digest = hashlib.sha256()
    for package in packages:
        for path in sorted((_ROOT / package).rglob("*")):
            if path.suffix in (".py", ".json", ".toml"):
                digest.update(f"{path.relative_to(_ROOT).as_posix()}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()
