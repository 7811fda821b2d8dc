import pytest

from miners.licence_headers import header_licences
from tests.miners.test_licence_texts import APACHE_NOTICE, BSD3, GNU_NOTICE, MIT

GPL_NOTICE = GNU_NOTICE.format(kind="", version="3")


def commented(text: str) -> bytes:
    return "".join(f"# {line}".rstrip() + "\n" for line in text.splitlines()).encode()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (b"", ()),
        (b"x = 1\n", ()),
        (b"# SPDX-License-Identifier: MIT\n", ("MIT",)),
        (b"#!/usr/bin/python\r\n#  SPDX-License-Identifier:apache-2.0  \r\n", ("Apache-2.0",)),
        (b'"""A module.\n\nSPDX-License-Identifier: GPL-3.0-or-later\n"""\n', ("GPL-3.0-or-later",)),
        (b"# SPDX-License-Identifier: (MIT OR Apache-2.0)\n", ("MIT OR Apache-2.0",)),
        (b"/* SPDX-License-Identifier: MIT */\n", ("MIT",)),
        (b"# SPDX-License-Identifier: MIT OR ISC\n# SPDX-License-Identifier: 0BSD\n", ("0BSD", "MIT OR ISC")),
        (b"# SPDX-License-Identifier: MIT\n# SPDX-License-Identifier: MIT\n", ("MIT",)),
        (b"# SPDX-License-Identifier: LicenseRef-Own\n", ("LicenseRef-Own",)),
        (b"# SPDX-License-Identifier: whatever I like\n", ("NOASSERTION",)),
        (b"# SPDX-License-Identifier: NOASSERTION\n", ("NOASSERTION",)),
        (b"# SPDX-License-Identifier:\n", ("NOASSERTION",)),
        (b"TAG = 'SPDX-License-Identifier: MIT'\n", ()),
        (b"\n" * 29 + b"# SPDX-License-Identifier: MIT\n", ("MIT",)),
        (b"\n" * 30 + b"# SPDX-License-Identifier: MIT\n", ()),
        (b"# \xff\xfe\n# SPDX-License-Identifier: MIT\n", ("MIT",)),
        (b"\xef\xbb\xbf# SPDX-License-Identifier: MIT\n", ("MIT",)),
    ],
)
def test_tags(source: bytes, found: tuple[str, ...]) -> None:
    assert header_licences(source) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (commented(APACHE_NOTICE) + b"import os\n", ("Apache-2.0",)),
        (commented(GPL_NOTICE), ("GPL-3.0-or-later",)),
        (b'#!/usr/bin/env python\n"""A module.\n\n' + GPL_NOTICE.encode() + b'"""\nimport os\n', ("GPL-3.0-or-later",)),
        (b"r'''" + APACHE_NOTICE.encode() + b"'''\n", ("Apache-2.0",)),
        (b'"""One line."""\n' + commented(APACHE_NOTICE), ("Apache-2.0",)),
        (commented(APACHE_NOTICE + GPL_NOTICE), ("Apache-2.0", "GPL-3.0-or-later")),
        (commented(MIT), ("MIT",)),
        (commented("A port.\n\n" + BSD3), ("BSD-3-Clause",)),
        (commented("SPDX-License-Identifier: MIT\n" + GPL_NOTICE), ("MIT",)),
        (b'import os\nTEMPLATE = """\n' + APACHE_NOTICE.encode() + b'"""\n', ()),
        (b'"""A module."""\n"""\n' + APACHE_NOTICE.encode() + b'"""\n', ()),
        (b"import os\n" + commented(GPL_NOTICE), ()),
        (b"# Use of this code is governed by a BSD-style license that is in the LICENSE file.\n", ()),
        (b"# Parts come from a project licensed under the Apache License, Version 2.0.\n", ()),
    ],
)
def test_notices_and_texts_in_the_leading_comments(source: bytes, found: tuple[str, ...]) -> None:
    assert header_licences(source) == found
