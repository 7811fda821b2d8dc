"""Task files as a release has them: prompts, their assignment, what is written and that it stands alone."""

import ast
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from publishing.harness.export import (
    MIN_PROMPTS,
    TASKS,
    HarnessTask,
    assigned_prompt,
    read_prompts,
    write_task_files,
)
from schemas.execution import RealCode
from tests.publishing.releases import ROW_TYPES

TYPES = {**ROW_TYPES, "real_code": RealCode}
ASKED = [task for task in TASKS if task.kind != "perplexity"]
# Columns that hold the answer or a part of it, by task.
SECRET = {
    "random_cut": {"target", "code", "docstring"},
    "with_docstring": {"target", "code"},
    "from_docstring": {"target", "code"},
    "commit_gen_code": {"code", "diff"},
    "commit_gen_message": {"commit_message"},
    "summarization_gen": {"target", "code", "docstring"},
    "real_code": {"canonical_solution", "code", "mocks"},
}


@pytest.mark.parametrize("task", ASKED, ids=lambda task: task.name)
def test_prompts_are_enough_and_show_columns_of_the_row_but_not_the_answer(task: HarnessTask) -> None:
    prompts = read_prompts()[task.name]
    assert len(set(prompts)) == len(prompts) >= MIN_PROMPTS
    columns = {item.name for item in fields(TYPES[task.testbed])}
    places = [set(re.findall(r"\{(\w+)\}", prompt)) for prompt in prompts]
    assert all(place and place <= columns - SECRET[task.name] for place in places)
    assert {task.target, task.given} - {""} <= columns
    assert len({frozenset(place) for place in places} - {frozenset({"diff", "code"})}) <= 1
    if task.given:
        assert all(prompt.endswith(f"{{{task.given}}}") for prompt in prompts)


def test_every_testbed_is_a_task_and_every_task_has_prompts() -> None:
    assert {task.testbed for task in TASKS} == set(TYPES)
    assert set(read_prompts()) == {task.name for task in ASKED}


def test_a_rows_prompt_depends_on_seed_task_and_row_alone() -> None:
    assert [assigned_prompt(0, "random_cut", row_id, 10) for row_id in ("a", "b", "c")] == [9, 5, 2]
    assert assigned_prompt(1, "random_cut", "a", 10) == 6
    assert assigned_prompt(0, "with_docstring", "a", 10) == 0


def test_prompts_are_assigned_evenly() -> None:
    counts = Counter(assigned_prompt(7, "random_cut", f"{number:032x}", 10) for number in range(5_000))
    assert set(counts) == set(range(10))
    # Chi squared with nine degrees of freedom exceeds 27.9 once in a thousand.
    assert sum((count - 500) ** 2 / 500 for count in counts.values()) < 27.9


ROWS = {"raw_data": ["b", "a"], "random_cut": ["b", "a"], "commit_gen": ["a"], "real_code": []}


def test_files_are_written_for_testbeds_with_rows_and_are_the_same_bytes_again(tmp_path: Path) -> None:
    written = write_task_files(tmp_path / "one", ROWS, 3, "2026.11")
    assert [entry.path for entry in written] == [
        "inspect/postquem.py",
        "lm_eval/postquem.py",
        "lm_eval/postquem_commit_gen_code.yaml",
        "lm_eval/postquem_commit_gen_message.yaml",
        "lm_eval/postquem_random_cut.yaml",
        "lm_eval/postquem_raw_data.yaml",
        "prompts.json",
    ]
    reordered = {name: ids[::-1] for name, ids in reversed(ROWS.items())}
    assert write_task_files(tmp_path / "two", reordered, 3, "2026.11") == written
    assert write_task_files(tmp_path / "three", {}, 3, "2026.11")[0].path == "prompts.json"
    assert not (tmp_path / "three" / "inspect").exists()


def test_prompts_json_says_which_row_has_which(tmp_path: Path) -> None:
    write_task_files(tmp_path, ROWS, 3, "2026.11")
    described = json.loads((tmp_path / "prompts.json").read_text())
    assert (described["seed"], list(described["tasks"])) == (
        3,
        ["raw_data", "random_cut", "commit_gen_code", "commit_gen_message"],
    )
    assert described["tasks"]["raw_data"] == {
        "testbed": "raw_data", "kind": "perplexity", "given": "", "target": "code", "prompts": [], "assigned": {},
    }  # fmt: skip
    cut = described["tasks"]["random_cut"]
    assert cut["assigned"] == {name: assigned_prompt(3, "random_cut", name, 10) for name in ("a", "b")}
    assert tuple(cut["prompts"]) == read_prompts()["random_cut"]


def load_yaml(path: Path) -> dict[str, Any]:
    """Read a task of lm-evaluation-harness; a function becomes its name."""

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!function", lambda loader, node: f"!{node.value}")
    values: dict[str, Any] = yaml.load(path.read_text(), Loader)
    return values


def test_an_lm_eval_task_is_complete(tmp_path: Path) -> None:
    write_task_files(tmp_path, {"random_cut": ["a"], "raw_data": ["a"], "real_code": ["a"]}, 0, "2026.11")
    assert load_yaml(tmp_path / "lm_eval/postquem_random_cut.yaml") == {
        "task": "postquem_random_cut", "tag": "postquem", "custom_dataset": "!postquem.load",
        "dataset_kwargs": {"task": "random_cut"}, "test_split": "test", "num_fewshot": 0, "doc_to_target": "target",
        "output_type": "generate_until", "doc_to_text": "prompt", "target_delimiter": "",
        "process_results": "!postquem.score_code",
        "generation_kwargs": {"until": [], "do_sample": False, "temperature": 0.0, "max_gen_toks": 1024},
        "metric_list": [
            {"metric": name, "aggregation": aggregation, "higher_is_better": True}
            for name, aggregation in
            [("exact_match", "mean"), ("edit_similarity", "mean"), ("bleu", "bleu"), ("chrf", "chrf")]
        ],
        "metadata": {"version": "2026.11"},
    }  # fmt: skip
    real = load_yaml(tmp_path / "lm_eval/postquem_real_code.yaml")
    assert [item["aggregation"] for item in real["metric_list"]] == ["!postquem.pass_at_1", "!postquem.unscored"]
    raw = load_yaml(tmp_path / "lm_eval/postquem_raw_data.yaml")
    assert (raw["output_type"], raw["doc_to_text"]) == ("loglikelihood_rolling", "")
    assert [item["higher_is_better"] for item in raw["metric_list"]] == [False, False, False]


@pytest.fixture
def lm_eval_file(tmp_path: Path) -> ModuleType:
    """The exported functions of lm-evaluation-harness, run where they stand; they need only the standard library."""
    write_task_files(tmp_path, {"random_cut": ["a"]}, 0, "2026.11")
    path = tmp_path / "lm_eval" / "postquem.py"
    module = ModuleType("postquem")
    module.__file__ = str(path)
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    return module


def test_exported_files_import_nothing_of_ours(tmp_path: Path) -> None:
    write_task_files(tmp_path, {"random_cut": ["a"]}, 0, "2026.11")
    ours = {"publishing", "schemas", "flows", "scoring", "warehouse"}
    for path in (tmp_path / "lm_eval" / "postquem.py", tmp_path / "inspect" / "postquem.py"):
        tree = ast.parse(path.read_text())
        imported = {node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
        assert not imported & ours
        assert ast.get_docstring(tree)
    assert path.read_text().endswith(
        '\n\n@task\ndef random_cut() -> Task:\n    """The rows of random_cut."""\n    return build("random_cut")\n'
    )


def test_scores_compare_the_answer_and_leave_bleu_to_the_harness(lm_eval_file: ModuleType) -> None:
    score: Callable[..., dict[str, object]] = lm_eval_file.score_code
    doc = {"given": "def f():\n    ", "target": "return 1"}
    expected = {"exact_match": 1.0, "edit_similarity": 1.0, "bleu": ("return 1", "return 1"), "chrf": ("return 1",) * 2}
    assert score(doc, ["```python\ndef f():\n    return 1\n```"]) == expected
    assert lm_eval_file.score_text({"target": "A b."}, ['"A c."'])["edit_similarity"] == 0.75


def test_real_code_is_judged_once_for_both_metrics(lm_eval_file: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[object, Path]] = []

    def judged(answers: object, release: Path) -> list[tuple[str, str]]:
        calls.append((answers, release))
        return [("passed", ""), ("failed", "test_failed"), ("unscored", "backend_error"), ("timeout", "")]

    monkeypatch.setattr(lm_eval_file, "judge", judged)
    answers = [lm_eval_file.collect({"instance_id": name}, ["x"])["pass_at_1"] for name in "abcd"]
    assert lm_eval_file.pass_at_1(answers) == 1 / 3
    assert lm_eval_file.unscored(answers) == 1 / 4
    assert calls == [((("a", "x"), ("b", "x"), ("c", "x"), ("d", "x")), lm_eval_file.RELEASE)]
