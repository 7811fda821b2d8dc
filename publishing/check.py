"""`release check`: whether a release folder keeps its promises, seen from the folder alone."""

from collections.abc import Callable, Collection
from pathlib import Path

from publishing.check_documents import check_croissant, check_datasets, check_duckdb, check_readme
from publishing.check_duplicates import check_duplicates
from publishing.check_files import (
    check_files,
    check_funnel,
    check_ids,
    check_keys,
    check_manifest,
    check_order,
    check_schema,
)
from publishing.check_rows import check_classes, check_dates, check_features, check_licences, check_splicing
from publishing.check_tasks import check_tasks
from publishing.checking import CheckResult, Release, open_release

CHECKS: dict[str, Callable[[Release], CheckResult]] = {
    "files": check_files,
    "schema": check_schema,
    "manifest": check_manifest,
    "funnel": check_funnel,
    "order": check_order,
    "ids": check_ids,
    "keys": check_keys,
    "dates": check_dates,
    "novelty": check_classes,
    "licences": check_licences,
    "features": check_features,
    "splicing": check_splicing,
    "duplicates": check_duplicates,
    "card": check_readme,
    "croissant": check_croissant,
    "tasks": check_tasks,
    "duckdb": check_duckdb,
    "datasets": check_datasets,
}


def check_release(folder: Path, code_version: str, names: Collection[str] = ()) -> list[CheckResult]:
    """Return what every check, or those named, finds, in the order of `CHECKS`; ConfigError without a release.

    A config whose files cannot be read or have other columns is a fault of `schema`, and the checks of rows go on
    without it. `code_version` is this program's: the text of documents is compared only with its own.
    """
    release = open_release(folder, code_version)
    return [check(release) for name, check in CHECKS.items() if not names or name in names]
