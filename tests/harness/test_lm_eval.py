"""lm-evaluation-harness runs every task of a release with a dummy model, offline."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import lm_eval
import pytest
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

from publishing.harness.export import TASKS
from tests.harness.conftest import rows_of

Docs = Mapping[str, Any]


class Dummy(LM):
    """Answers as it is told to; a text costs one nat for each byte."""

    def __init__(self, answer: Callable[[Docs], str]) -> None:
        super().__init__()
        self.answer = answer

    def loglikelihood(self, requests: list[Any], **_: object) -> list[tuple[float, bool]]:
        raise NotImplementedError

    def loglikelihood_rolling(self, requests: list[Any], **_: object) -> list[float]:
        return [-float(len(request.args[0].encode())) for request in requests]

    def generate_until(self, requests: list[Any], **_: object) -> list[str]:
        return [self.answer(request.doc) for request in requests]


def evaluate(release: Path, task: str, answer: Callable[[Docs], str]) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Return the metrics of a task and its samples."""
    tasks = TaskManager(include_path=str(release / "lm_eval"), include_defaults=False)
    found = lm_eval.simple_evaluate(
        model=Dummy(answer), tasks=[task], task_manager=tasks, bootstrap_iters=0, log_samples=True
    )
    metrics = {name.removesuffix(",none"): value for name, value in found["results"][task].items() if "," in name}
    return {name: value for name, value in metrics.items() if value != "N/A"}, found["samples"][task]


COMPARED = [task.name for task in TASKS if task.kind in ("code", "text")]


@pytest.mark.parametrize("name", COMPARED)
def test_right_answers_are_right_fenced_and_after_a_repetition_too(release: Path, name: str) -> None:
    def answer(doc: Docs) -> str:
        return f"Here it is:\n~~~~python\n{doc['given']}{doc['target']}\n~~~~\n"

    metrics, samples = evaluate(release, f"postquem_{name}", answer)
    [testbed] = [task.testbed for task in TASKS if task.name == name]
    assert len(samples) == len(rows_of(release, testbed)) > 0
    assert (metrics["exact_match"], metrics["edit_similarity"]) == (1.0, 1.0)
    assert metrics["chrf"] == pytest.approx(100.0)


@pytest.mark.parametrize("name", COMPARED)
def test_wrong_answers_are_not(release: Path, name: str) -> None:
    metrics, _ = evaluate(release, f"postquem_{name}", lambda doc: "~")
    assert metrics["exact_match"] == 0.0
    assert metrics["edit_similarity"] < 0.05
    assert metrics["bleu"] < 1.0


def test_a_prompt_shows_what_is_given_and_not_the_answer(release: Path) -> None:
    prompts = [sample["arguments"][0][0] for sample in evaluate(release, "postquem_from_docstring", str)[1]]
    rows = rows_of(release, "from_docstring")
    assert len(prompts) == len(rows)
    for row in rows:
        [prompt] = [text for text in prompts if text.endswith(str(row["prompt_code"]))]
        assert str(row["target"]).strip() not in prompt


def test_raw_code_is_measured_in_bits_per_byte(release: Path) -> None:
    metrics, samples = evaluate(release, "postquem_raw_data", str)
    assert metrics["bits_per_byte"] == pytest.approx(1.442695)  # one nat in bits
    assert metrics["byte_perplexity"] == pytest.approx(2.718282)
    assert len(samples) == len(rows_of(release, "raw_data"))


def test_real_code_is_scored_by_the_command(release: Path, scorer: Path) -> None:
    task = "postquem_real_code"
    assert evaluate(release, task, lambda doc: str(doc["target"]))[0] == {"pass_at_1": 1.0, "unscored": 0.0}
    assert evaluate(release, task, lambda doc: "pass")[0] == {"pass_at_1": 0.0, "unscored": 0.0}
    scorer.write_text("{}")
    assert evaluate(release, task, lambda doc: "raise")[0]["unscored"] == 1.0


def test_the_tag_runs_all(release: Path) -> None:
    tasks = TaskManager(include_path=str(release / "lm_eval"), include_defaults=False)
    offered = {f"postquem_{task.name}" for task in TASKS if rows_of(release, task.testbed)}
    assert set(tasks.match_tasks(["postquem_*"])) == offered
    assert "postquem" in tasks.all_tags
