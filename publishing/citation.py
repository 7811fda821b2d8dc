"""How to cite a release, as BibTeX."""

from publishing.facts import ReleaseFacts
from publishing.manifest import Manifest


def bibtex_entry(facts: ReleaseFacts, manifest: Manifest) -> str:
    """Return the entry; the year is that of the newest date in the rows, since the run's is not recorded."""
    key = "".join(char for char in manifest.name.lower() if char.isalnum() and char.isascii()) or "postquem"
    fields = {"title": _escape(manifest.name)}
    if facts.last_date is not None:
        fields["year"] = str(facts.last_date.year)
    fields |= {"version": _escape(manifest.version), "note": f"Configuration {manifest.config_digest[:12]}"}
    lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
    return f"@misc{{{key},\n{lines}\n}}"


def _escape(text: str) -> str:
    """Return text for a BibTeX field: one line, no braces or backslashes, special characters escaped."""
    one_line = "".join(char for char in " ".join(text.split()) if char not in "{}\\")
    return "".join(f"\\{char}" if char in "&%$#_" else char for char in one_line)
