"""Writes a document that is made from the code, or checks that it is up to date."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Document:
    """A document made from the code."""

    path: Path
    """Where it stands."""
    name: str
    """What messages call it: its path in the project."""
    module: str
    """Module that makes it, called as `python -m`."""

    def write_or_check(self, text: str, arguments: Sequence[str] | None) -> int:
        """Write the text, or with --check among the arguments compare it with the file; return the exit code."""
        parser = argparse.ArgumentParser(description=f"Generate {self.name} from the code.")
        parser.add_argument("--check", action="store_true", help="exit 1 when the file is stale")
        if parser.parse_args(arguments).check:
            if self.path.is_file() and self.path.read_text(encoding="utf-8") == text:
                return 0
            print(f"{self.name} is stale; run: python -m {self.module}", file=sys.stderr)
            return 1
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(text, encoding="utf-8", newline="\n")
        return 0
