"""Rows of the testbeds: every column of `DataPoint`, then the task's own (data contract, "Testbeds")."""

from dataclasses import dataclass

from schemas.records import DataPoint


@dataclass(frozen=True, slots=True)
class RandomCut(DataPoint):
    """Code completion, code to code: the docstring is removed, the body is cut at a random token boundary."""

    prefix: str
    """Code before the cut; prefix + target is `code` without its docstring."""
    target: str
    """Code after the cut, with at least one statement token."""
    cut_byte: int
    """Length of prefix in UTF-8 bytes."""


@dataclass(frozen=True, slots=True)
class WithDocString(DataPoint):
    """Code completion, code and text to code: the docstring stays, the body is cut after it."""

    prefix: str
    """Code before the cut; prefix + target is `code`."""
    target: str
    """Code after the cut, with at least one statement token."""
    cut_byte: int
    """Length of prefix in UTF-8 bytes."""


@dataclass(frozen=True, slots=True)
class FromDocString(DataPoint):
    """Code generation, text to code: decorators, signature and docstring are given, the whole body is asked for."""

    prompt_code: str
    """Code up to the end of the docstring; prompt_code + target is `code`."""
    target: str
    """The body after the docstring."""


@dataclass(frozen=True, slots=True)
class CommitGen(DataPoint):
    """Commit message and code, usable in both directions."""

    diff: str
    """Unified diff of the method's file at the commit against the first parent."""


@dataclass(frozen=True, slots=True)
class SummarizationGen(DataPoint):
    """Code summarisation, code to text."""

    code_without_docstring: str
    """`code` with the docstring statement removed."""
    target: str
    """The docstring."""
