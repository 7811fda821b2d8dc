import pytest
from identify.vendor.licenses import LICENSES

from miners.licence_texts import NOT_OPEN, recognise

TEXTS = dict(LICENSES)
MIT, BSD3, APACHE, GPL3 = (TEXTS[spdx] for spdx in ("MIT", "BSD-3-Clause", "Apache-2.0", "GPL-3.0"))
APACHE_NOTICE = """Copyright 2014-2019 Ada

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
"""
GNU_NOTICE = """This program is free software: you can redistribute it and/or modify
it under the terms of the GNU {kind}General Public License as published by
the Free Software Foundation, either version {version} of the License, or
(at your option) any later version.
"""
PSF = """PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2

1. This LICENSE AGREEMENT is between the Python Software Foundation
("PSF"), and the Individual or Organization ("Licensee") accessing ...
"""
# As in the licence that redis took in 2024, in our words but for the names of both licences.
CHOICE_OF_CLOSED = """From now on, contributions are subject to the user's choice of the
Redis Source Available License v2 (RSALv2) or the Server Side Public License v1 (SSPLv1).
"""


def rewrapped(text: str, width: int) -> str:
    """Return the text with its lines broken elsewhere."""
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return "\n".join([*lines, line])


class TestTexts:
    @pytest.mark.parametrize("spdx", sorted(TEXTS))
    def test_every_known_text_is_itself(self, spdx: str) -> None:
        assert recognise(TEXTS[spdx]) == (spdx,)

    @pytest.mark.parametrize(
        "spdx", ["MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Apache-2.0", "GPL-3.0", "LGPL-2.1"]
    )
    @pytest.mark.parametrize("width", [40, 72, 10_000])
    def test_line_breaks_do_not_matter(self, spdx: str, width: int) -> None:
        body = (
            TEXTS[spdx].split("\n\n", 2)[2] if spdx in ("MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC") else TEXTS[spdx]
        )
        assert recognise(rewrapped(body, width)) == (spdx,)

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("", ()),
            ("Public Domain.\n", ()),
            ("All rights reserved.", ()),
            ("Ask me.\n" * 400, ()),
            (MIT.replace("MIT License", "The MIT License (MIT)\n\nCopyright (c) 2018 Ada, Bob and Carl"), ("MIT",)),
            (MIT[MIT.index("Permission") :], ("MIT",)),
            (APACHE[: APACHE.index("END OF TERMS")] + "END OF TERMS AND CONDITIONS", ("Apache-2.0",)),
            (APACHE_NOTICE, ("Apache-2.0",)),
            (BSD3 + "\n\n=====\n\nParts are under another licence:\n\n" + MIT, ("BSD-3-Clause", "MIT")),
            ("Preface. " * 100 + MIT, ("MIT",)),
            (MIT.replace("The above copyright notice", "You shall pay the author for every copy. " * 4), ()),
            ("MIT", ("MIT",)),
            ("mit or apache-2.0\n", ("MIT OR Apache-2.0",)),
        ],
    )
    def test_other_forms(self, text: str, found: tuple[str, ...]) -> None:
        assert recognise(text) == found

    def test_the_clause_on_endorsement_varies(self) -> None:
        start, end = BSD3.index("3. Neither the name"), BSD3.index("THIS SOFTWARE IS PROVIDED")
        names = (
            "* The names of the contributors may not be used to endorse or promote products derived from this software "
            "without specific prior written permission.\n\n"
        )
        assert recognise(BSD3[:start] + names + BSD3[end:]) == ("BSD-3-Clause",)
        advertising = (
            "3. All advertising materials mentioning features or use of this software must display the following "
            "acknowledgement: This product includes software developed by the organization and its contributors.\n\n"
        )
        assert recognise(BSD3[:start] + advertising + BSD3[start:]) == ()
        assert recognise(BSD3[:start] + BSD3[end:]) == ("BSD-2-Clause",)

    def test_gpl_is_not_affero_although_it_names_it(self) -> None:
        assert "Affero" in GPL3
        assert recognise(GPL3) == ("GPL-3.0",)
        assert recognise("A library.\n\n" + GPL3) == ("GPL-3.0",)


class TestNearlyTheSame:
    """Texts that differ in few words from a licence and mean something else."""

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("Commons Clause License Condition v1.0\n\n" + APACHE, ("Apache-2.0", "LicenseRef-Commons-Clause")),
            ("Server Side Public License\n\n" + TEXTS["AGPL-3.0"], ("SSPL-1.0",)),
            (CHOICE_OF_CLOSED, ("LicenseRef-RSAL", "SSPL-1.0")),
            ("Elastic License 2.0\n\nAcceptance", ("Elastic-2.0",)),
            ("ELASTIC LICENSE AGREEMENT", ("LicenseRef-Elastic",)),
            ("Business Source License 1.1\n\nParameters", ("BUSL-1.1",)),
            ("Common Public License Version 1.0\n\n" + TEXTS["EPL-1.0"], ("CPL-1.0",)),
            (MIT.replace("The above", "The Software shall be used for Good, not Evil.\n\nThe above"), ("JSON",)),
            (PSF, ("PSF-2.0",)),
            (PSF + "BEOPEN.COM\n1. This LICENSE AGREEMENT is between BeOpen.com", ("Python-2.0",)),
            (PSF.replace("Python Software Foundation", "Plotting Development Team"), ()),
            (MIT + "\nFor non-commercial use only.\n", ("LicenseRef-NonCommercial", "MIT")),
            (MIT + "\nFor commercial or non-commercial use.\n", ("MIT",)),
        ],
    )
    def test_other_terms(self, text: str, found: tuple[str, ...]) -> None:
        assert recognise(text) == found

    @pytest.mark.parametrize(
        ("base", "title", "found"),
        [
            ("CC-BY-4.0", "Attribution-NonCommercial 4.0 International", "CC-BY-NC-4.0"),
            ("CC-BY-4.0", "Attribution-NoDerivatives 4.0 International", "CC-BY-ND-4.0"),
            ("CC-BY-4.0", "Attribution-NonCommercial-NoDerivatives 4.0 International", "CC-BY-NC-ND-4.0"),
            ("CC-BY-SA-4.0", "Attribution-NonCommercial-ShareAlike 4.0 International", "CC-BY-NC-SA-4.0"),
        ],
    )
    def test_creative_commons_are_told_apart_by_their_titles(self, base: str, title: str, found: str) -> None:
        old = TEXTS[base].partition("\n")[0]
        assert recognise(TEXTS[base].replace(old, title)) == (found,)
        assert recognise(f"This work is licensed under a Creative Commons {title} License.") == (found,)

    def test_gpl_and_affero_texts_are_not_cut_down_to_the_notice_at_their_end(self) -> None:
        for spdx in ("GPL-2.0", "GPL-3.0", "AGPL-3.0", "LGPL-2.1"):
            assert "any later version" in " ".join(TEXTS[spdx].split())
            assert recognise(TEXTS[spdx] + "\n\nEnd\n" * 100) == (spdx,)


class TestNotices:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            (GNU_NOTICE.format(kind="", version="3"), ("GPL-3.0-or-later",)),
            (GNU_NOTICE.format(kind="Lesser ", version="2.1"), ("LGPL-2.1-or-later",)),
            (GNU_NOTICE.format(kind="Library ", version="2"), ("LGPL-2.0-or-later",)),
            (GNU_NOTICE.format(kind="Affero ", version="3"), ("AGPL-3.0-or-later",)),
            (GNU_NOTICE.format(kind="", version="3").partition(", or")[0] + ".", ("GPL-3.0-only",)),
            (
                "modify it under the terms of version 2 of the GNU General Public License as published by the Free "
                "Software Foundation.",
                ("GPL-2.0-only",),
            ),
            ("modify it under the terms of the GNU General Public License, version 2 only.", ("GPL-2.0-only",)),
            ("modify it under the terms of the GNU General Public License version 7", ()),
            ("modify it under the terms of the GNU General Public License.", ()),
            (
                "This Source Code Form is subject to the terms of the Mozilla Public\nLicense, v. 2.0. If a copy",
                ("MPL-2.0",),
            ),
            (APACHE_NOTICE + GNU_NOTICE.format(kind="", version="2"), ("Apache-2.0", "GPL-2.0-or-later")),
            ("Parts are licensed under the Apache License, Version 2.0.", ()),
        ],
    )
    def test_notices(self, text: str, found: tuple[str, ...]) -> None:
        assert recognise(text) == found


def test_terms_without_an_spdx_id_are_those_that_are_known_not_to_be_open() -> None:
    texts = (APACHE + "Commons Clause", "Elastic License", "Redis Source Available License", "non-commercial use")
    found = {name for text in texts for name in recognise(text) if name.startswith("LicenseRef-")}
    assert found == NOT_OPEN - {"LicenseRef-Proprietary"}  # which metadata states


def test_a_repeated_beginning_is_no_licence() -> None:
    assert recognise("GNU General Public License " * 20_000) == ()
