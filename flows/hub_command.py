"""`postquem release push` and `postquem release yank`. Imports what it needs when it is called."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from flows.publish_release import Published
    from publishing.withdraw import Withdrawal

_REPO = click.option("--repo", required=True, help="Data set repository on the Hub, owner/name.")
_DRY_RUN = click.option("--dry-run", is_flag=True, help="Tell what would be done; sends nothing that writes.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON on standard output.")


@click.command("push")
@click.argument("folder", type=click.Path(path_type=Path))
@_REPO
@click.option("--private", is_flag=True, help="Make a new repository private; refuse one that is public.")
@_DRY_RUN
@click.option("--no-read-back", is_flag=True, help="Do not load what was published to compare it.")
@_JSON
def push(folder: Path, repo: str, *, private: bool, dry_run: bool, no_read_back: bool, as_json: bool) -> None:
    """Publish a release folder on the Hugging Face Hub: one commit, and one tag named as the version.

    Run it again after any failure: what was uploaded is not sent again, and when nothing changed nothing is pushed.
    Afterwards every config is loaded under the tag and compared. The token is that of HF_TOKEN or `hf auth login`.
    """
    from flows.publish_release import publish_release

    published = publish_release(folder, repo, private=private, dry_run=dry_run, check=not no_read_back)
    click.echo(json.dumps(published.as_json(), indent=2) if as_json else _push_text(published))


@click.command("yank")
@click.argument("version")
@_REPO
@click.option("--reason", required=True, help="Why; published in the card.")
@_DRY_RUN
@_JSON
def yank(version: str, repo: str, reason: str, *, dry_run: bool, as_json: bool) -> None:
    """Withdraw a published version, as when somebody opted out of it.

    Deletes its rows from the Hub's storage and its tag, and leaves a tombstone in the card. Push the new version
    first: branch main holds no data after the newest version was withdrawn.
    """
    from flows.publish_release import as_plain, withdraw_release

    gone = withdraw_release(version, repo, reason, dry_run=dry_run)
    click.echo(json.dumps(as_plain(gone), indent=2) if as_json else _yank_text(gone, dry_run=dry_run))


def _push_text(published: "Published") -> str:
    result = published.result
    lines = [f"  + {path} ({size:,} bytes)" for path, size in result.added.items()]
    lines += [f"  - {path}" for path in result.deleted]
    lines += [f"    {path} is no release's and stays" for path in result.kept]
    lines += [f"    {path} is not in the manifest and was not pushed" for path in published.others]
    if result.status == "planned":
        made = f"{result.repo} would be made, then " if result.creates else f"In {result.repo} "
        lines.insert(0, f"{made}{len(result.added)} files written, {len(result.deleted)} deleted:")
        lines.append(f"and the commit tagged {result.version}. Nothing was sent.")
    elif result.status == "unchanged":
        lines.insert(0, f"{result.repo} has version {result.version} already: nothing to push")
    else:
        lines.insert(0, f"{result.repo} has version {result.version} now, commit {result.commit}:")
    if published.read_back is not None:
        rows = sum(published.read_back.rows.values())
        lines.append(f"Read back: {rows:,} rows of {len(published.read_back.rows)} configs and "
                     f"{published.read_back.files} files are those of the folder.")  # fmt: skip
    return "\n".join(lines)


def _yank_text(gone: "Withdrawal", *, dry_run: bool) -> str:
    would = "Would withdraw" if dry_run else "Withdrew"
    lines = [f"{would} version {gone.version} of {gone.repo}, commit {gone.commit}."]
    lines += [f"  deleted for good: {path}" for path in gone.deleted]
    lines += [f"  not in the Hub's list of stored files: {path}" for path in gone.not_listed]
    lines += [f"  stays, since {', '.join(others)} hold it too: {path}" for path, others in gone.shared.items()]
    if gone.empties_main:
        lines.append("Branch main held this version and has no data now; push another version.")
    lines.append(
        f"The commit stays in the history. Whoever knows its id can read there: {', '.join(gone.in_git)}. "
        "Copies that others made are not reached."
    )
    return "\n".join(lines)
