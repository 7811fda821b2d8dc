"""Generate the tables of options in docs/commands.md from the commands themselves, or check that they are up to date.

python -m tools.commands            # write the tables into docs/commands.md
python -m tools.commands --check    # exit 1 when they are stale

What stands outside the two marks is written by hand.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import click

from flows.cli import cli
from tools.generated import Document

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "docs" / "commands.md"
BEGIN = "<!-- made by `python -m tools.commands` from the commands; do not edit -->"
END = "<!-- end -->"


def leaves(command: click.Command, name: str = "postquem") -> Iterator[tuple[str, click.Command]]:
    """Yield every command that does something, with its whole name, in the order of the help."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    for inner in command.commands.values():
        yield from leaves(inner, f"{name} {inner.name}")


def render() -> str:
    """Return the tables; commands in a row that take the same share one. ValueError for an option without help."""
    sections = []
    for rows, group in groupby(leaves(cli), lambda item: table_rows(*item)):
        named = list(group)
        lines = [f"- `{_usage(name, command)}`: {_text(command.help)}" for name, command in named]
        table = ["", "| option | meaning |", "|---|---|", *rows] if rows else []
        sections.append("\n".join([*lines, *table, ""]))
    return "\n".join(sections)


def table_rows(name: str, command: click.Command) -> tuple[str, ...]:
    """Return a line of Markdown for each option of a command."""
    context = click.Context(command)
    rows = []
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if not isinstance(parameter, click.Option) or record is None:
            continue  # an argument: it stands in the usage, and the command's text tells of it
        option, meaning = record
        if not parameter.help:
            raise ValueError(f"{name} {option} has no help")
        rows.append(f"| `{_plain(option)}` | {_plain(meaning)} |")
    return tuple(rows)


def _usage(name: str, command: click.Command) -> str:
    """Return a command with its arguments and the options that it cannot do without."""
    context = click.Context(command)
    needed = [
        parameter.opts[0] + " " + parameter.make_metavar(context)
        for parameter in command.params
        if isinstance(parameter, click.Option) and parameter.required
    ]
    arguments = [
        parameter.make_metavar(context) for parameter in command.params if isinstance(parameter, click.Argument)
    ]
    return _plain(" ".join([name, *arguments, *needed]))


def _text(help_text: str | None) -> str:
    return " ".join((help_text or "").split())


def _plain(text: str) -> str:
    """Return text that cannot end a cell."""
    return " ".join(text.split()).replace("|", "\\|")


def page(text: str) -> str:
    """Return the page with the tables put between the marks; ValueError without them."""
    filled, n_places = re.subn(
        f"{re.escape(BEGIN)}\n.*?{re.escape(END)}",
        lambda _: f"{BEGIN}\n\n{render()}\n{END}",
        text,
        flags=re.DOTALL,
    )
    if n_places != 1:
        raise ValueError(f"docs/commands.md must hold the mark {BEGIN} and, behind it, {END} once")
    return filled


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the tables, or with --check compare them; return the exit code."""
    text = page(OUTPUT.read_text(encoding="utf-8"))
    return Document(OUTPUT, "docs/commands.md", "tools.commands").write_or_check(text, arguments)


if __name__ == "__main__":
    sys.exit(main())
