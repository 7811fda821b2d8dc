"""Inspect runs every task of a release with a dummy model, offline."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval as run
from inspect_ai.log import EvalLog
from inspect_ai.model import ChatMessage, GenerateConfig, ModelAPI, ModelOutput, modelapi
from inspect_ai.tool import ToolChoice, ToolInfo

from publishing.harness.export import TASKS, read_prompts
from tests.harness.conftest import rows_of

ASKED = [task for task in TASKS if task.kind != "perplexity"]
ANSWER: Callable[[str], str] = str


@modelapi(name="postquem_dummy")
class Dummy(ModelAPI):
    """Answers a prompt as the test tells."""

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        return ModelOutput.from_content("dummy", ANSWER(input[-1].text))


def evaluate(release: Path, name: str, logs: Path, answer: Callable[[str], str]) -> EvalLog:
    global ANSWER
    ANSWER = answer
    path = f"{release / 'inspect' / 'postquem.py'}@{name}"
    [log] = run(path, model="postquem_dummy/x", log_dir=str(logs), display="none")
    assert (log.status, log.error) == ("success", None)
    return log


def metric(log: EvalLog, score: str, name: str) -> float:
    assert log.results is not None
    [found] = [item for item in log.results.scores if item.name == score]
    return float(found.metrics[name].value)


def knowing(release: Path, name: str, wrap: str = "{}") -> Callable[[str], str]:
    """Return a model that finds the row by its prompt and gives the row's answer."""
    [task] = [task for task in TASKS if task.name == name]
    answers: dict[str, str] = {}
    for row in rows_of(release, task.testbed):
        for prompt in read_prompts()[name]:
            text = prompt
            for column, value in row.items():
                if f"{{{column}}}" in prompt:
                    text = text.replace(f"{{{column}}}", str(value))
            answers[text] = str(row[task.target])
    return lambda prompt: wrap.replace("{}", answers[prompt])


# Without commit_gen_code: rows of one commit have one prompt there, so the model cannot know which one it is asked for.
@pytest.mark.parametrize("name", [task.name for task in ASKED if task.name not in ("real_code", "commit_gen_code")])
def test_right_answers_are_right_fenced_too(release: Path, tmp_path: Path, name: str) -> None:
    log = evaluate(release, name, tmp_path, knowing(release, name, "So:\n~~~~\n{}\n~~~~"))
    [testbed] = [task.testbed for task in TASKS if task.name == name]
    assert len(log.samples or ()) == len(rows_of(release, testbed)) > 0
    assert metric(log, "exact_match", "mean") == metric(log, "edit_similarity", "mean") == 1.0


@pytest.mark.parametrize("name", ["commit_gen_code", "summarization_gen"])
def test_wrong_answers_are_not(release: Path, tmp_path: Path, name: str) -> None:
    log = evaluate(release, name, tmp_path, lambda prompt: "~")
    assert metric(log, "exact_match", "mean") == 0.0
    assert metric(log, "edit_similarity", "mean") < 0.05


def test_text_has_the_words_f1(release: Path, tmp_path: Path) -> None:
    log = evaluate(release, "commit_gen_message", tmp_path, knowing(release, "commit_gen_message"))
    assert metric(log, "f1", "mean") == 1.0


def test_real_code_is_scored_by_the_command_and_the_unknown_is_not_counted(
    release: Path, tmp_path: Path, scorer: Path
) -> None:
    right = knowing(release, "real_code")
    assert metric(evaluate(release, "real_code", tmp_path, right), "tests", "accuracy") == 1.0
    assert metric(evaluate(release, "real_code", tmp_path, lambda prompt: "pass"), "tests", "accuracy") == 0.0
    scorer.write_text("{}")
    log = evaluate(release, "real_code", tmp_path, right)
    scores: Any = (log.samples or [])[0].scores
    assert scores["tests"].reason == "control_failed"
    assert log.results is not None
    assert log.results.scores[0].unscored_samples == 1
