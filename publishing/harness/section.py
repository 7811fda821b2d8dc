"""The card's section about the task files."""

from publishing.facts import ReleaseFacts
from publishing.harness.export import TASKS
from publishing.manifest import Manifest
from publishing.markdown import code, fenced


def harness_section(facts: ReleaseFacts, manifest: Manifest) -> str:
    """Return how to evaluate a model with the task files; empty without a task."""
    filled = {config.name for config in facts.configs if config.rows}
    tasks = [task for task in TASKS if task.testbed in filled]
    if not tasks:
        return ""
    asked = [task for task in tasks if task.kind != "perplexity"]
    names = [task.name for task in asked or tasks]
    commands = f"lm-eval run --include_path lm_eval --tasks postquem_{names[0]} --model hf --model_args pretrained=..."
    if asked:
        commands += f"\ninspect eval inspect/postquem.py@{names[0]} --model ..."
    listed = ", ".join(code(f"postquem_{task.name}") for task in tasks)
    return (
        "## How to evaluate a model\n\n"
        "Task files for [lm-evaluation-harness](https://github.com/EleutherAI/lm-evaluation-harness) and "
        "[Inspect](https://inspect.aisi.org.uk) are part of the release. In this folder (from the Hub: "
        f"`hf download <id> --repo-type dataset --revision {manifest.version} --local-dir .`):\n\n"
        f"{fenced(commands, 'sh')}\n\n"
        f"Tasks: {listed}. `prompts.json` holds the prompts of every task, and which one each row always gets. "
        "Answers to `real_code` are run by Postquem itself: set `POSTQUEM` to its command."
    )
