"""What both harnesses' task files share: a row's prompt, the answer in a model's output, how alike two texts are.

This file becomes a part of the task files in a release, which run where Postquem need not be installed: only the
standard library is used.
"""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

_PLACE = re.compile(r"\{(\w+)\}")
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n`]*\n(.*?)(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_QUOTES = ('"""', "'''", '"', "'")


def fill(template: str, row: Mapping[str, object]) -> str:
    """Return a prompt: every `{name}` of the template replaced by the row's column, once."""
    return _PLACE.sub(lambda place: str(row[place[1]]), template)


def code_answer(output: str, given: str) -> str:
    """Return the code of an output: of its first fenced block if it has one, without a repetition of what was given.

    What a model thinks aloud before `</think>` is left out.
    """
    text = output.rpartition("</think>")[2]
    fenced = _FENCE.search(text)
    text = fenced[2] if fenced else text
    for start in (given.lstrip(), given.strip()):
        if start and text.lstrip().startswith(start):
            text = text.lstrip()[len(start) :]
            break
    return text.strip("\r\n").rstrip()


def text_answer(output: str) -> str:
    """Return the words of an output: without thinking, without a fence or quotes around them."""
    text = output.rpartition("</think>")[2]
    fenced = _FENCE.search(text)
    text = (fenced[2] if fenced else text).strip()
    for quote in _QUOTES:
        if len(text) >= 2 * len(quote) and text.startswith(quote) and text.endswith(quote):
            return text[len(quote) : -len(quote)].strip()
    return text


def exact_match(answer: str, target: str) -> float:
    """Return 1.0 when the texts are equal but for white space at the ends of lines and of the whole, else 0.0."""
    return float(trimmed(answer) == trimmed(target))


def edit_similarity(answer: str, target: str) -> float:
    """Return 1 - d / n: d the Levenshtein distance in characters, n the longer text's length; 1.0 for two empty."""
    first, second = trimmed(answer), trimmed(target)
    longest = max(len(first), len(second))
    return 1 - levenshtein(first, second) / longest if longest else 1.0


def levenshtein(first: str, second: str) -> int:
    """Return the least number of characters to insert, delete or replace (Myers 1999 as given by Hyyroe 2003).

    A column of the table is two bit vectors of its vertical differences, so a character costs a few operations on
    integers of `len(first)` bits.
    """
    if not first:
        return len(second)
    places: dict[str, int] = {}
    for index, char in enumerate(first):
        places[char] = places.get(char, 0) | 1 << index
    mask, last = (1 << len(first)) - 1, 1 << (len(first) - 1)
    plus, minus, distance = mask, 0, len(first)
    for char in second:
        equal = places.get(char, 0)
        diagonal = (((equal & plus) + plus) ^ plus) | equal | minus
        up, down = minus | (~(diagonal | plus) & mask), plus & diagonal
        distance += bool(up & last) - bool(down & last)
        up, down = (up << 1 | 1) & mask, (down << 1) & mask
        plus, minus = down | (~(diagonal | up) & mask), up & diagonal
    return distance


def trimmed(text: str) -> str:
    """Return a text without white space at the ends of its lines and of the whole."""
    return "\n".join(line.rstrip() for line in text.split("\n")).strip()


def judge(answers: Sequence[tuple[str, str]], release: Path) -> list[tuple[str, str]]:
    """Run answers to tasks of real_code in Postquem's sandbox; return verdict and reason of each, in their order.

    An answer is an instance id and the model's output. The command is `POSTQUEM` (default `postquem`, which may be
    installed elsewhere than the harness), its workspace `POSTQUEM_WORKSPACE` (default `data`). RuntimeError when the
    command fails: then nothing is known.
    """
    with TemporaryDirectory(prefix="postquem-") as folder:
        given, rows = Path(folder, "answers.jsonl"), Path(folder, "rows.jsonl")
        lines = [json.dumps({"instance_id": name, "answer": output}) for name, output in answers]
        given.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        program = shlex.split(os.environ.get("POSTQUEM", "postquem"))
        workspace = os.environ.get("POSTQUEM_WORKSPACE", "data")
        options = ["--answers", str(given), "--release", str(release), "--workspace", workspace, "--out", str(rows)]
        command = [*program, "score", "real_code", *options, "--json"]
        try:
            ended = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise RuntimeError(f"{command[0]} cannot be run ({error}); set POSTQUEM to the command") from error
        if ended.returncode != 0:
            raise RuntimeError(f"{shlex.join(command)} failed: {ended.stderr.strip()}")
        found = [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]
    verdicts = {(row["instance_id"], row["sample"]): (row["verdict"], row["reason"]) for row in found}
    counts: dict[str, int] = {}
    judged = []
    for name, _ in answers:
        judged.append(verdicts[name, counts.setdefault(name, 0)])
        counts[name] += 1
    return judged
