"""The page itself: figures and rows put into one HTML file that needs nothing beside it."""

import hashlib
import json
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from publishing.manifest import MANIFEST_NAME
from publishing.report.figures import read_figures
from publishing.report.samples import draw_sample, read_items, stylesheet
from schemas.errors import ConfigError
from schemas.review import REVIEW_REASONS, SAMPLE_SIZE
from warehouse.tables import explain_os_errors, write_text

MARKS_FORMAT = "postquem-review/1"


@dataclass(frozen=True, slots=True)
class PageResult:
    """A written page."""

    path: Path
    """The file."""
    n_rows: int
    """Rows that can be looked at."""
    size: int
    """Bytes."""


def manifest_digest(folder: Path) -> str:
    """Return the SHA-256 of a release's manifest: what marks belong to."""
    return hashlib.sha256((folder / MANIFEST_NAME).read_bytes()).hexdigest()


def write_page(folder: Path, target: Path, size: int = SAMPLE_SIZE, seed: int = 0) -> PageResult:
    """Write a release's page to `target`; the same release, size and seed give the same bytes.

    Raises ConfigError when the folder is no release or the page would stand inside it, where `check` would not know it.
    """
    figures = read_figures(folder)
    if target.resolve().is_relative_to(folder.resolve()):
        raise ConfigError(f"{target} lies in the release folder, whose files the manifest lists; choose another place")
    sample = draw_sample(folder, figures.manifest["rows"], size, seed)
    review = {
        "format": MARKS_FORMAT,
        "release": {
            "name": figures.manifest["name"],
            "version": figures.manifest["version"],
            "manifest_sha256": manifest_digest(folder),
        },
        "sample": {"size": size, "seed": seed},
        "reasons": {reason.value: text for reason, text in REVIEW_REASONS.items()},
        "items": [asdict(item) for item in read_items(folder, sample)],
    }
    text = _environment().from_string(_resource("page.html")).render(
        figures=figures,
        manifest=figures.manifest,
        style=Markup(_resource("page.css") + stylesheet()),  # noqa: S704 - our own files
        script=Markup(_resource("page.js")),  # noqa: S704 - our own file
        review=_json_in_html(review),
        n_sample=len(sample),
        seed=seed,
    )  # fmt: skip
    with explain_os_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        write_text(target, text)
    return PageResult(target, len(sample), len(text.encode()))


def _environment() -> Environment:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["count"] = lambda number: f"{number:,}"
    environment.filters["number"] = lambda number: f"{number:,.1f}" if number >= 10 or not number else f"{number:.2g}"
    environment.filters["safe_svg"] = Markup  # made by publishing.report.charts, which escapes its texts
    return environment


def _resource(name: str) -> str:
    return (files("publishing.report") / name).read_text(encoding="utf-8")


def _json_in_html(value: object) -> Markup:
    """Return JSON that no text in it can end: `<`, `>` and `&` as escapes that JSON knows."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - escaped above
