"""Publishing a release on the Hub and withdrawing one: plain functions that retry passing faults and say so."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from publishing.hub import HubRepository, patiently
from publishing.push import PushResult, PushStatus, push
from publishing.read_back import ReadBack, check_datasets, read_back
from publishing.release_files import read_release_files
from publishing.withdraw import Withdrawal, withdraw

Wait = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Published:
    """A push and its check."""

    result: PushResult
    """What was pushed."""
    others: tuple[str, ...]
    """Files in the folder that are no part of the release."""
    read_back: ReadBack | None
    """What was loaded and compared; null when it was not asked for, and in a dry run."""

    def as_json(self) -> dict[str, Any]:
        """Return it in plain JSON types; the keys are documented in docs/publishing.md."""
        return as_plain(self.result) | {
            "others": list(self.others),
            "read_back": None if self.read_back is None else asdict(self.read_back),
        }


def publish_release(
    folder: Path,
    repo: str,
    *,
    private: bool = False,
    dry_run: bool = False,
    check: bool = True,
    wait: Wait = time.sleep,
) -> Published:
    """Push a release folder and read it back. Errors: see `publishing.push.push` and `publishing.read_back`."""
    if check and not dry_run:
        check_datasets()
    release = read_release_files(folder)
    target = HubRepository(repo)
    result = patiently(lambda: push(release, target, private=private, dry_run=dry_run), _note, wait)
    checked = None
    if check and result.status is not PushStatus.PLANNED:
        checked = read_back(release, repo, release.version)
    return Published(result, release.others, checked)


def withdraw_release(
    version: str, repo: str, reason: str, *, dry_run: bool = False, wait: Wait = time.sleep
) -> Withdrawal:
    """Withdraw a version, dated today by UTC. Errors: see `publishing.withdraw.withdraw`."""
    target, day = HubRepository(repo), datetime.now(UTC).date()
    return patiently(lambda: withdraw(target, version, reason, day, dry_run=dry_run), _note, wait)


def as_plain(result: PushResult | Withdrawal) -> dict[str, Any]:
    """Return a result in plain JSON types."""
    return asdict(result)


def _note(text: str) -> None:
    click.echo(text, err=True)
