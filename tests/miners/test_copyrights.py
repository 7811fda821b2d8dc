"""Who holds the copyright, by the lines that say so."""

import time

import pytest
from identify.vendor.licenses import LICENSES

from miners.copyrights import copyright_lines
from miners.licence_texts import licence_words


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "MIT License\n\nCopyright (c) 2020-2024  Ada Author\n\nPermission is",
            ("Copyright (c) 2020-2024 Ada Author",),
        ),
        ("# Copyright 2019 The Authors. All rights reserved.\n", ("Copyright 2019 The Authors. All rights reserved.",)),
        (
            "/* (C) 2001 Ada */\n * Portions Copyright (C) 2002 Bob\n",
            ("(C) 2001 Ada", "Portions Copyright (C) 2002 Bob"),
        ),
        ("© 2021 Ada <ada@example.org>\n", ("© 2021 Ada <ada@example.org>",)),
        ("# SPDX-FileCopyrightText: 2022 Ada\n", ("SPDX-FileCopyrightText: 2022 Ada",)),
        (".. Copyright (c) Ada Foundation and contributors.\n", ("Copyright (c) Ada Foundation and contributors.",)),
        ('"""Copyright (c) 2020 Ada"""\n', ("Copyright (c) 2020 Ada",)),
        ("Copyright (c) 2020 Ada\nCopyright (c)  2020 Ada\n", ("Copyright (c) 2020 Ada",)),
        ("Copyright 2020 Zoë\r\nCopyright 2021 李\r\n", ("Copyright 2020 Zoë", "Copyright 2021 李")),
        ("copyright notice and this permission notice\nThe copyright holders of 2020\n", ()),
        ("Copyright (c) <year> <copyright holders>\nCopyright [yyyy] [name of copyright owner]\n", ()),
        ("", ()),
    ],
)
def test_lines_that_name_a_holder(text: str, lines: tuple[str, ...]) -> None:
    assert copyright_lines(text) == lines


def test_a_licences_own_text_names_no_holder_of_the_code() -> None:
    """The Free Software Foundation holds the GPL's text, not what is under it."""
    assert [spdx for spdx, text in LICENSES if copyright_lines(text)] == []
    gpl = next(text for spdx, text in LICENSES if spdx == "GPL-3.0")
    assert "Copyright (C) 2007 Free Software Foundation" in gpl
    assert copyright_lines("Copyright (C) 2020 Ada\n" + gpl) == ("Copyright (C) 2020 Ada",)


def test_a_hostile_text_is_cut() -> None:
    lines = copyright_lines("".join(f"Copyright {number} {'x' * 400}\n" for number in range(1_000, 2_000)))
    assert (len(lines), {len(line) for line in lines}) == (50, {300})


@pytest.mark.parametrize("mark", ["\n", "*", " \n", "(c)", "<", "copyright ", "© "])
def test_a_hostile_text_takes_no_longer_than_its_length(mark: str) -> None:
    """A pattern that begins anew at each of these marks and reads to the end would take hours."""
    text = mark * (200_000 // len(mark))
    began = time.process_time()
    copyright_lines(text)
    copyright_lines(f"Copyright 2020 {text}x")
    licence_words(text)
    assert time.process_time() - began < 5
