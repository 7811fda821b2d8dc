"""Writes a release's task files: `prompts.json`, `lm_eval/` and `inspect/`."""

import ast
import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from schemas.errors import PipelineError
from warehouse.tables import FileEntry, file_entry, write_text

PROMPTS_NAME = "prompts.json"
MIN_PROMPTS = 10  # of every task: one wording's luck must not decide a score (MERA has as many)
_HERE = Path(__file__).parent
_SHARED = "publishing.harness.answers"
_RULE = "SHA-256 of '<seed>/<task>/<row_id>', its first 16 hexadecimal digits modulo the number of prompts"
_MAX_NEW_TOKENS = 1_024  # longer than all but a few methods; lm-evaluation-harness' own code tasks use it


@dataclass(frozen=True, slots=True)
class HarnessTask:
    """A task that a testbed is offered as."""

    name: str
    """Name, the testbed's but for testbeds that are used in two directions."""
    testbed: str
    """Config of the release."""
    kind: str
    """`code` and `text` are compared with the target, `tests` are run, `perplexity` asks for no answer."""
    given: str
    """Column that an answer may repeat before it goes on; empty when there is none."""
    target: str
    """Column with what is asked for."""


TASKS = (
    HarnessTask("raw_data", "raw_data", "perplexity", "", "code"),
    HarnessTask("raw_data_docstring", "raw_data_docstring", "perplexity", "", "code"),
    HarnessTask("random_cut", "random_cut", "code", "prefix", "target"),
    HarnessTask("with_docstring", "with_docstring", "code", "prefix", "target"),
    HarnessTask("from_docstring", "from_docstring", "code", "prompt_code", "target"),
    HarnessTask("commit_gen_code", "commit_gen", "code", "", "code"),
    HarnessTask("commit_gen_message", "commit_gen", "text", "", "commit_message"),
    HarnessTask("summarization_gen", "summarization_gen", "text", "", "target"),
    HarnessTask("real_code", "real_code", "tests", "", "canonical_solution"),
)
_METRICS = {
    "code": (("exact_match", "mean"), ("edit_similarity", "mean"), ("bleu", "bleu"), ("chrf", "chrf")),
    "text": (("exact_match", "mean"), ("edit_similarity", "mean"), ("bleu", "bleu"), ("chrf", "chrf")),
    "tests": (("pass_at_1", "!function postquem.pass_at_1"), ("unscored", "!function postquem.unscored")),
    "perplexity": (
        ("bits_per_byte", "bits_per_byte"),
        ("byte_perplexity", "weighted_perplexity"),
        ("word_perplexity", "weighted_perplexity"),
    ),
}
_LOWER_IS_BETTER = ("bits_per_byte", "byte_perplexity", "word_perplexity", "unscored")
_PROCESS = {"code": "score_code", "text": "score_text", "tests": "collect"}


def write_task_files(folder: Path, row_ids: Mapping[str, Sequence[str]], seed: int, version: str) -> list[FileEntry]:
    """Write the task files of every testbed that has rows; `row_ids` are those of each config.

    The same rows, seed and version give the same bytes.
    """
    offered = [task for task in TASKS if row_ids.get(task.testbed)]
    texts = {PROMPTS_NAME: _prompts_json(offered, row_ids, seed)}
    if offered:
        texts["lm_eval/postquem.py"] = _exported("lm_eval_tasks.py")
        texts |= {f"lm_eval/postquem_{task.name}.yaml": _lm_eval_yaml(task, version) for task in offered}
    asked = [task for task in offered if task.kind != "perplexity"]
    if asked:
        texts["inspect/postquem.py"] = _exported("inspect_tasks.py") + "".join(map(_inspect_task, asked))
    for path, text in texts.items():
        write_text(folder / path, text)
    return [file_entry(folder / path, folder) for path in sorted(texts)]


def assigned_prompt(seed: int, task: str, row_id: str, n_prompts: int) -> int:
    """Return which prompt a row gets; it depends on nothing else."""
    digest = hashlib.sha256(f"{seed}/{task}/{row_id}".encode()).hexdigest()
    return int(digest[:16], 16) % n_prompts


@cache
def read_prompts() -> Mapping[str, tuple[str, ...]]:
    """Return the prompts of every task, without the line end that begins each in the file."""
    tables = tomllib.loads((_HERE / "prompts.toml").read_text(encoding="utf-8"))
    prompts = {name: tuple(values["prompts"]) for name, values in tables.items()}
    for task in TASKS:
        if task.kind != "perplexity" and len(set(prompts.get(task.name, ()))) < MIN_PROMPTS:
            raise PipelineError(f"{task.name} has fewer than {MIN_PROMPTS} prompts; please report this as a bug")
    return prompts


def _prompts_json(tasks: Iterable[HarnessTask], row_ids: Mapping[str, Sequence[str]], seed: int) -> str:
    """Return the prompts and which row has which, one row a line."""
    described = {}
    for task in tasks:
        prompts = read_prompts().get(task.name, ())
        ids = sorted(row_ids[task.testbed]) if prompts else []
        described[task.name] = {
            "testbed": task.testbed,
            "kind": task.kind,
            "given": task.given,
            "target": task.target,
            "prompts": prompts,
            "assigned": {row_id: assigned_prompt(seed, task.name, row_id, len(prompts)) for row_id in ids},
        }
    return json.dumps({"seed": seed, "rule": _RULE, "tasks": described}, indent=1, ensure_ascii=False) + "\n"


def _exported(name: str) -> str:
    """Return the source of a task file: its docstring, the shared functions, then its own."""
    own, shared = (_HERE / name).read_text(encoding="utf-8"), (_HERE / "answers.py").read_text(encoding="utf-8")
    docstring, rest = _split_docstring(own)
    return f"{docstring}\n{_split_docstring(shared)[1]}\n{_without_import(rest)}"


def _split_docstring(source: str) -> tuple[str, str]:
    lines, first = source.splitlines(keepends=True), ast.parse(source).body[0]
    return "".join(lines[: first.end_lineno]), "".join(lines[first.end_lineno :])


def _without_import(source: str) -> str:
    """Return the source without the import of what has been put above it."""
    lines = source.splitlines(keepends=True)
    [found] = [node for node in ast.parse(source).body if isinstance(node, ast.ImportFrom) and node.module == _SHARED]
    return "".join([*lines[: found.lineno - 1], *lines[found.end_lineno :]])


def _inspect_task(task: HarnessTask) -> str:
    return (
        f"\n\n@task\ndef {task.name}() -> Task:\n"
        f'    """The rows of {task.testbed}."""\n'
        f'    return build("{task.name}")\n'
    )


def _lm_eval_yaml(task: HarnessTask, version: str) -> str:
    """Return a task of lm-evaluation-harness; its tags make it no plain YAML, so it is written as text."""
    lines = [
        f"task: postquem_{task.name}",
        "tag: postquem",
        "custom_dataset: !function postquem.load",
        "dataset_kwargs:",
        f"  task: {task.name}",
        "test_split: test",
        "num_fewshot: 0",
        "doc_to_target: target",
    ]
    if task.kind == "perplexity":
        lines += ["output_type: loglikelihood_rolling", 'doc_to_text: ""']
    else:
        lines += [
            "output_type: generate_until",
            "doc_to_text: prompt",
            'target_delimiter: ""',
            f"process_results: !function postquem.{_PROCESS[task.kind]}",
            "generation_kwargs:",
            "  until: []",
            "  do_sample: false",
            "  temperature: 0.0",
            f"  max_gen_toks: {_MAX_NEW_TOKENS}",
        ]
    lines.append("metric_list:")
    for name, aggregation in _METRICS[task.kind]:
        better = "false" if name in _LOWER_IS_BETTER else "true"
        lines += [f"  - metric: {name}", f"    aggregation: {aggregation}", f"    higher_is_better: {better}"]
    lines += ["metadata:", f"  version: {json.dumps(version)}"]
    return "\n".join(lines) + "\n"
