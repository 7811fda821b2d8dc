"""The file `NOTICE` of a release: whose code it is, as the code's licences ask whoever passes it on to say."""

from publishing.facts import UNKNOWN_LICENSE, ReleaseFacts
from publishing.manifest import Manifest
from publishing.statistics import Attribution

NOTICE_NAME = "NOTICE"
_NOBODY = "no line names a holder: the copyright is its contributors'"


def render_notice(facts: ReleaseFacts, manifest: Manifest) -> str:
    """Return the text: repositories with head and licences, where these are stated, and the lines that name holders."""
    records = {str(record["repo"]): record for record in manifest.repositories}
    blocks = [
        f"{manifest.name} {manifest.version}\n\nThe code in this data set was written by others and stays under their "
        "licences. The lines below are\nthose that name holders of the copyright in the files that state a row's "
        "licence and in the row's own\nfile, at the row's commit; column `copyrights` has them row by row."
    ]
    former = None
    for item in facts.statistics.attributions:
        if item.repo != former:
            record = records.get(item.repo, {})
            place = record.get("web_url") or record.get("host")
            blocks.append(_one_line(item.repo) + (f" ({place}, head {record['head']})" if record else ""))
            former = item.repo
        blocks[-1] += "\n\n" + _licence(item)
    return "\n\n\n".join(blocks) + "\n"


def _licence(item: Attribution) -> str:
    """Return the paragraph of one repository's rows under one licence."""
    rows = f"{item.rows:,} row{'' if item.rows == 1 else 's'}"
    stated = f", stated in {', '.join(map(_one_line, item.sources))}" if item.sources else ""
    lines = [_one_line(line) for line in item.copyrights] or [_NOBODY]
    return "\n".join([f"  {item.license or UNKNOWN_LICENSE}: {rows}{stated}", *(f"    {line}" for line in lines)])


def _one_line(text: str) -> str:
    """Return text without anything that could begin a line or act on a terminal."""
    return "".join(char if char.isprintable() else " " for char in text).strip()
