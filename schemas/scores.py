"""Rows of scored answers."""

from dataclasses import dataclass
from enum import StrEnum


class AnswerVerdict(StrEnum):
    """What the tests say about an answer."""

    PASSED = "passed"
    """Every test of PASS_TO_PASS reported that it passed."""
    FAILED = "failed"
    """A test failed, or gave no report though it does with the canonical solution."""
    TIMEOUT = "timeout"
    """A test took more than ten times as long as with the canonical solution."""
    UNSCORED = "unscored"
    """No verdict: the tests do not pass with the canonical solution either, or could not be run."""


@dataclass(frozen=True, slots=True)
class AnswerScore:
    """A judged answer to a task of real_code (what `postquem score real_code --out` writes)."""

    instance_id: str
    """The task."""
    repo: str
    """owner/name of its repository."""
    sample: int
    """Number of the answer among those to its task, from 0, in the order of the answers' file."""
    verdict: AnswerVerdict
    """What the tests say."""
    reason: str
    """Why it did not pass; empty when it did."""
    detail: str
    """Evidence for a reader: the first failing test and its exception, the missing report."""
    rules: tuple[str, ...]
    """Rules by which the body was found in the answer (docs/scoring.md)."""
    body: str
    """The body that was run."""
