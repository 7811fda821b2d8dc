"""The Inspect tasks of the release that this file is in: inspect eval <release>/inspect/postquem.py@random_cut."""

import asyncio
import json
from pathlib import Path
from typing import Any

from inspect_ai import Task, task  # noqa: F401 - the tasks of a release follow in its file
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, f1, mean, scorer, stderr
from inspect_ai.solver import TaskState, generate

from publishing.harness.answers import code_answer, edit_similarity, exact_match, fill, judge, text_answer

RELEASE = Path(__file__).resolve().parents[1]
# Scores of one repository's rows are alike: errors are clustered by it.
_METRICS = [mean(), stderr(cluster="repo")]


def build(name: str) -> Task:
    """Return a task over the rows of the release."""
    spec = json.loads((RELEASE / "prompts.json").read_text(encoding="utf-8"))["tasks"][name]
    scorers = {
        "code": [similarity("code")],
        "text": [similarity("text"), f1(answer_fn=text_answer)],
        "tests": [tests()],
    }
    return Task(
        dataset=MemoryDataset(_samples(spec), name=f"postquem_{name}"),
        solver=generate(),
        scorer=scorers[spec["kind"]],
        config=GenerateConfig(temperature=0.0),
    )


def _samples(spec: dict[str, Any]) -> list[Sample]:
    from datasets import load_dataset

    samples = []
    for row in load_dataset(str(RELEASE), spec["testbed"], split="test"):
        metadata = {"repo": row["repo"], "url": row["url"], "license": row["license"]}
        metadata["given"] = row[spec["given"]] if spec["given"] else ""
        prompt = fill(spec["prompts"][spec["assigned"][row["row_id"]]], row)
        name = row.get("instance_id", row["row_id"])
        samples.append(Sample(input=prompt, target=row[spec["target"]], id=name, metadata=metadata))
    return samples


@scorer(metrics={"exact_match": _METRICS, "edit_similarity": _METRICS})
def similarity(kind: str) -> Scorer:
    """Compare the code or the text in an output with the row's."""

    async def score(state: TaskState, target: Target) -> Score:
        output = state.output.completion
        answer = code_answer(output, state.metadata["given"]) if kind == "code" else text_answer(output)
        values = {
            "exact_match": exact_match(answer, target.text),
            "edit_similarity": edit_similarity(answer, target.text),
        }
        return Score(value=values, answer=answer)

    return score


@scorer(metrics=[accuracy(), stderr(cluster="repo")])
def tests() -> Scorer:
    """Run the tests of the task in Postquem's sandbox; what cannot be judged is not counted.

    Answers that arrive while others are run are run together next.
    """
    waiting: list[tuple[tuple[str, str], asyncio.Future[tuple[str, str]]]] = []
    running = asyncio.Lock()

    async def run_waiting() -> None:
        async with running:
            batch = waiting.copy()
            waiting.clear()
            if not batch:
                return
            try:
                verdicts = await asyncio.to_thread(judge, [answer for answer, _ in batch], RELEASE)
            except RuntimeError as error:
                for _, future in batch:
                    future.set_exception(error)
                return
            for (_, future), verdict in zip(batch, verdicts, strict=True):
                future.set_result(verdict)

    async def score(state: TaskState, target: Target) -> Score:
        future: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()
        waiting.append(((str(state.sample_id), state.output.completion), future))
        await run_waiting()
        verdict, reason = await future
        if verdict == "unscored":
            return Score.unscored(reason=reason, answer=state.output.completion)
        passed = CORRECT if verdict == "passed" else INCORRECT
        return Score(value=passed, answer=state.output.completion, explanation=reason or verdict)

    return score
