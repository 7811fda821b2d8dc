"""Reads models' answers: JSON lines with `instance_id` and `answer`, or `answers` for several at once."""

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.errors import ConfigError

_EXAMPLE = '{"instance_id": "...", "answer": "    return 1"}'


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers to the tasks of a release."""

    by_instance: Mapping[str, tuple[str, ...]]
    """Answers of each task that has any, in the order of the file; tasks sorted by id."""
    missing: tuple[str, ...]
    """Tasks without an answer, sorted."""
    unknown: tuple[str, ...]
    """Ids of no task, sorted; their answers are not judged."""
    repeated: int
    """Answers that equal an earlier one to the same task; they count, since samples may be alike."""


def read_answers(path: Path, instance_ids: Collection[str]) -> Answers:
    """Read a file of answers to these tasks.

    Several lines of one task are several samples. ConfigError, with the line's number, for a line that is no such
    object, and for a file without a line.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise ConfigError(f"cannot read the answers {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the answers {path} are not UTF-8: {error}") from error
    given: dict[str, list[str]] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            instance_id, answers = _read_line(line, f"{path}, line {number}")
            given.setdefault(instance_id, []).extend(answers)
    if not given:
        raise ConfigError(f"{path} holds no answer; a line looks like {_EXAMPLE}")
    known = frozenset(instance_ids)
    by_instance = {name: tuple(given[name]) for name in sorted(given) if name in known and given[name]}
    return Answers(
        by_instance=by_instance,
        missing=tuple(sorted(known - set(by_instance))),
        unknown=tuple(sorted(set(given) - known)),
        repeated=sum(count - 1 for texts in by_instance.values() for count in Counter(texts).values()),
    )


def _read_line(line: str, where: str) -> tuple[str, list[str]]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise ConfigError(f"{where} is no JSON: {error}; a line looks like {_EXAMPLE}") from None
    if not isinstance(row, dict) or not isinstance(row.get("instance_id"), str):
        raise ConfigError(f"{where} has no instance_id; a line looks like {_EXAMPLE}")
    return row["instance_id"], _texts(row, where)


def _texts(row: Mapping[str, Any], where: str) -> list[str]:
    """Return a line's answers; an empty answer is an empty text, never null."""
    if ("answer" in row) == ("answers" in row):
        raise ConfigError(f"{where} must have either answer or answers; a line looks like {_EXAMPLE}")
    texts = [row["answer"]] if "answer" in row else row["answers"]
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ConfigError(f'{where}: an answer is a text and answers is a list of texts; write "" for an empty answer')
    for text in texts:
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise ConfigError(f"{where} holds half a surrogate pair, which no file can hold") from None
    return texts
