"""Functions of the lm-evaluation-harness tasks beside this file. They read the release that the file is in."""

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from publishing.harness.answers import code_answer, edit_similarity, exact_match, fill, judge, text_answer, trimmed

RELEASE = Path(__file__).resolve().parents[1]


def load(task: str, **_: object) -> Any:  # noqa: ANN401 - datasets.DatasetDict
    """Return a task's rows: `row_id`, `repo`, `prompt`, `given`, `target`, and `instance_id` of real_code."""
    from datasets import Dataset, DatasetDict, load_dataset

    spec = json.loads((RELEASE / "prompts.json").read_text(encoding="utf-8"))["tasks"][task]
    rows = load_dataset(str(RELEASE), spec["testbed"], split="test")
    docs = []
    for row in rows:
        assigned = spec["assigned"].get(row["row_id"])
        doc = {"row_id": row["row_id"], "repo": row["repo"], "target": row[spec["target"]]}
        doc["given"] = row[spec["given"]] if spec["given"] else ""
        doc["prompt"] = "" if assigned is None else fill(spec["prompts"][assigned], row)
        docs.append(doc | {"instance_id": row.get("instance_id", "")})
    return DatasetDict({"test": Dataset.from_list(docs)})


def score_code(doc: Mapping[str, str], outputs: Sequence[str]) -> dict[str, object]:
    """Compare the code of an output with the row's."""
    return _scores(code_answer(outputs[0], doc["given"]), doc["target"])


def score_text(doc: Mapping[str, str], outputs: Sequence[str]) -> dict[str, object]:
    """Compare the words of an output with the row's."""
    return _scores(text_answer(outputs[0]), doc["target"])


def _scores(answer: str, target: str) -> dict[str, object]:
    """Return the metrics of one answer; BLEU and chrF are computed over all pairs by the harness."""
    pair = (trimmed(target), trimmed(answer))
    return {
        "exact_match": exact_match(answer, target),
        "edit_similarity": edit_similarity(answer, target),
        "bleu": pair,
        "chrf": pair,
    }


def collect(doc: Mapping[str, str], outputs: Sequence[str]) -> dict[str, object]:
    """Keep an answer to a task of real_code; all are run together."""
    answer = (doc["instance_id"], outputs[0])
    return {"pass_at_1": answer, "unscored": answer}


def pass_at_1(answers: Sequence[tuple[str, str]]) -> float:
    """Return the share of answers that pass their tests, of those that could be judged."""
    verdicts = [verdict for verdict, _ in _judged(tuple(map(tuple, answers))) if verdict != "unscored"]
    return sum(verdict == "passed" for verdict in verdicts) / len(verdicts) if verdicts else float("nan")


def unscored(answers: Sequence[tuple[str, str]]) -> float:
    """Return the share of answers that could not be judged."""
    verdicts = _judged(tuple(map(tuple, answers)))
    return sum(verdict == "unscored" for verdict, _ in verdicts) / len(verdicts)


@functools.cache
def _judged(answers: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    return judge(answers, RELEASE)
