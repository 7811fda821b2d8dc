"""What has been judged already, on disk: one small file for each distinct body, found again by what it depends on."""

import hashlib
import json
import shutil
from dataclasses import asdict
from pathlib import Path

from schemas.execution import RealCode, RealCodeConfig
from schemas.scores import AnswerVerdict
from scoring.verdicts import Ruling
from warehouse.tables import explain_os_errors, write_text

# What of the configuration a ruling depends on; the environment stands in the row.
_LIMITS = ("backend", "image", "suite_seconds", "memory_mib", "pids", "disk_mib")


class Scorebook:
    """Rulings below a folder. A ruling without a verdict is never kept: the next run tries again."""

    def __init__(self, folder: Path, code: str, config: RealCodeConfig) -> None:
        self.folder = folder
        self.trees = folder / "trees"
        self._code = code
        self._config = [getattr(config, name) for name in _LIMITS]

    def sweep(self) -> None:
        """Remove trees that a killed run left."""
        with explain_os_errors(self.trees):
            shutil.rmtree(self.trees, ignore_errors=True)
            self.trees.mkdir(parents=True, exist_ok=True)

    def path(self, task: RealCode, body: str) -> Path:
        """Return the file of a ruling; its name depends on everything that the ruling does."""
        parts = [
            self._code,
            self._config,
            task.instance_id,
            task.base_commit,
            task.path,
            hashlib.sha256("\0".join((task.left_context, task.right_context)).encode()).hexdigest(),
            list(task.PASS_TO_PASS),
            asdict(task.environment),
            body,
        ]
        digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
        return self.folder / digest[:2] / f"{digest[2:]}.json"

    def get(self, task: RealCode, body: str) -> Ruling | None:
        """Return a ruling that was kept; None when there is none or it is damaged."""
        try:
            found = json.loads(self.path(task, body).read_text(encoding="utf-8"))
            return Ruling(AnswerVerdict(found["verdict"]), found["reason"], found["detail"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, task: RealCode, body: str, ruling: Ruling) -> None:
        """Keep a ruling."""
        if ruling.verdict is not AnswerVerdict.UNSCORED:
            write_text(self.path(task, body), json.dumps(asdict(ruling)) + "\n")
