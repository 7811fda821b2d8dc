"""Trees of small projects for the tests of environments."""

import textwrap
from collections.abc import Mapping
from pathlib import Path


def write_tree(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below a folder, texts without their common indentation, and return the folder."""
    for name, contents in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents if isinstance(contents, bytes) else textwrap.dedent(contents).encode())
    root.mkdir(parents=True, exist_ok=True)
    return root
