"""What a remote service answered, kept by what was asked: a killed run asks nothing twice."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from warehouse.tables import write_text


class Journal:
    """JSON values below a folder, each in a file named by the SHA-256 of its key; one writer at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, key: str) -> dict[str, Any] | None:
        """Return what was put under a key; null without anything, and for a damaged file, which is asked anew."""
        try:
            entry = json.loads(self._path(key).read_text(encoding="utf-8"))
            value = entry["value"] if entry["key"] == key else None
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return value if isinstance(value, dict) else None

    def put(self, key: str, value: dict[str, Any]) -> None:
        """Keep a value under a key, whole or not at all; raises PipelineError when the disk is full."""
        text = json.dumps({"key": key, "value": value}, sort_keys=True, separators=(",", ":"))
        write_text(self._path(key), text)

    def remove(self, key: str) -> None:
        """Forget what was put under a key."""
        self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        digest = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        return self.folder / digest[:2] / f"{digest}.json"
