import pytest
from hypothesis import given
from hypothesis import strategies as st

from publishing.markdown import code, fenced, link, plain, share, size, table


def test_a_table_has_a_head_a_rule_and_rows() -> None:
    assert table(["a", "b"], [["1", "2"], ["3", ""]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 |  |"


def test_code_spans_and_text_stay_in_their_cell() -> None:
    assert code("a`b\n|c") == "`a'b \\|c`"
    assert plain("a\n <b> | c") == "a &lt;b> \\| c"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (None, "x"),
        ("", "x"),
        ("javascript:alert(1)", "x"),
        ("file:///home/ada", "x"),
        ("https://example.org/o/n", "[x](https://example.org/o/n)"),
        ("http://example.org/a%20b/é.py#L1-L2", "[x](http://example.org/a%20b/%C3%A9.py#L1-L2)"),
        ("https://example.org/a)b|c d<e>", "[x](https://example.org/a%29b%7Cc%20d%3Ce%3E)"),
    ],
)
def test_links_lead_to_web_addresses_only(url: str | None, expected: str) -> None:
    assert link("x", url) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "```\n\n```"),
        ("a", "```\na\n```"),
        ("a\n", "```\na\n```"),
        ("``` a\n", "````\n``` a\n````"),
        ("a `````b\n```\n", "``````\na `````b\n```\n``````"),
    ],
)
def test_fences_are_longer_than_what_they_hold(text: str, expected: str) -> None:
    assert fenced(text) == expected


@given(st.text(alphabet="`~\n a", max_size=30))
def test_no_line_of_a_fenced_text_closes_its_fence(text: str) -> None:
    fence, *lines, last = fenced(text, "python").split("\n")
    assert fence == last + "python"
    assert [line for line in lines if line.strip().startswith(last)] == []
    assert "\n".join(lines) in (text, text.removesuffix("\n"))


@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [(0, 0, "0.0%"), (0, 9, "0.0%"), (1, 9_999, "<0.1%"), (1, 3, "33.3%"), (9, 9, "100.0%")],
)
def test_shares(part: int, whole: int, expected: str) -> None:
    assert share(part, whole) == expected


@pytest.mark.parametrize(
    ("num_bytes", "expected"),
    [
        (0, "0.0 KB"),
        (49, "0.0 KB"),
        (14_321, "14.3 KB"),
        (999_949, "999.9 KB"),
        (999_950, "1.0 MB"),
        (10**6, "1.0 MB"),
        (1_234_567_890, "1,234.6 MB"),
    ],
)
def test_sizes(num_bytes: int, expected: str) -> None:
    assert size(num_bytes) == expected
