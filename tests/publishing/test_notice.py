"""The file that says whose code a release holds."""

from dataclasses import replace
from pathlib import Path

from publishing.facts import read_facts
from publishing.manifest import MANIFEST_NAME, read_manifest
from publishing.notice import NOTICE_NAME, render_notice
from publishing.release import write_release
from publishing.statistics import Attribution
from tests.publishing.releases import make_inputs


def test_the_notice_says_whose_code_it_is(tmp_path: Path) -> None:
    folder = write_release(make_inputs(), tmp_path).folder
    facts, manifest = read_facts(folder), read_manifest(folder / MANIFEST_NAME)
    assert (folder / NOTICE_NAME).read_text(encoding="utf-8") == render_notice(facts, manifest)
    items = (
        Attribution("o/n", "MIT", 1_200, ("LICENSE", "setup.cfg"), ("Copyright (c) 2020 Ada", "(C) 2021 B\x1b[2J\nob")),
        Attribution("o/n", None, 1, (), ()),
        Attribution("z/gone", "0BSD", 2, ("header",), ("© 2022 Zoë",)),
    )
    facts = replace(facts, statistics=replace(facts.statistics, attributions=items))
    record = {"repo": "o/n", "host": "example.org", "web_url": None, "head": "e" * 40}
    text = render_notice(facts, replace(manifest, repositories=(record,)))
    assert text.split("\n\n\n")[1:] == [
        f"o/n (example.org, head {'e' * 40})\n\n  MIT: 1,200 rows, stated in LICENSE, setup.cfg\n"
        "    Copyright (c) 2020 Ada\n    (C) 2021 B [2J ob\n\n"
        "  unknown: 1 row\n    no line names a holder: the copyright is its contributors'",
        "z/gone\n\n  0BSD: 2 rows, stated in header\n    © 2022 Zoë\n",
    ]
    assert text.startswith(f"{manifest.name} {manifest.version}\n\nThe code in this data set was written by others")
