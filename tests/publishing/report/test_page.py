"""The page in a real browser: what it shows, on a wide screen and a phone, and what a reviewer does with keys."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, Page, sync_playwright

from flows.cli import cli
from publishing.report.page import write_page
from publishing.report.review import read_marks
from publishing.report.samples import draw_sample
from schemas.errors import ConfigError
from schemas.review import ReviewMark, ReviewReason

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
# As root without a display and, for tests without a network, without its background calls.
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
]  # fmt: skip
NEEDS_BROWSER = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here (Debian: apt-get install chromium)")


@pytest.fixture(scope="module")
def page_file(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_page(release, tmp_path_factory.mktemp("page") / "page.html").path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, page_file: Path) -> Iterator[Page]:
    """The page in a new profile; any error of a script or asked-for address fails the test."""
    context = browser.new_context(viewport={"width": 1000, "height": 900})
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text))
    page.on("request", lambda request: faults.append(request.url) if request.url.startswith("http") else None)
    page.goto(page_file.as_uri())
    yield page
    context.close()
    assert faults == []


def save(page: Page, folder: Path) -> Path:
    with page.expect_download() as download:
        page.keyboard.press("s")
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def leave(page: Page) -> None:
    page.keyboard.press("Escape")


@NEEDS_BROWSER
def test_numbers_of_the_release_stand_on_the_page(page: Page) -> None:
    assert page.title() == "shapes 1.2.0"
    assert [row.split() for row in page.locator("#testbeds tr").all_inner_texts()] == [
        ["raw_data", "6"], ["raw_data_docstring", "5"], ["random_cut", "4"], ["with_docstring", "2"],
        ["from_docstring", "1"], ["commit_gen", "6"], ["summarization_gen", "0"], ["real_code", "1"],
    ]  # fmt: skip
    assert page.locator("#funnel .stage summary").all_inner_texts() == ["mine 9 in, 7 out", "dedup 7 in, 6 out"]
    page.locator("#funnel summary").first.click()
    assert page.locator("#funnel details[open] code").all_inner_texts() == ["bad_blob", "moved"]
    assert page.locator("#features details[open] figure").count() == 13
    assert "o/n 1 proven" in page.locator("#real-code summary").all_inner_texts()


@NEEDS_BROWSER
@pytest.mark.parametrize(("width", "height"), [(1000, 900), (390, 844)])
def test_nothing_runs_out_of_the_screen(page: Page, tmp_path: Path, width: int, height: int) -> None:
    page.set_viewport_size({"width": width, "height": height})
    for details in page.locator("details").all():
        details.evaluate("element => { element.open = true }")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    wide = "all => all.filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('pre, nav')).length"
    assert page.locator("main *").evaluate_all(wide) == 0
    picture = page.screenshot(path=tmp_path / "page.png")
    assert len(picture) > 10_000  # an empty page of this size has some 4,000 bytes


@NEEDS_BROWSER
def test_a_reviewer_marks_rows_by_keys_and_the_file_is_read_back(page: Page, release: Path, tmp_path: Path) -> None:
    page.fill("#reviewer", "Ada L.")
    leave(page)
    page.keyboard.press("v")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.select_option("#reason", "wrong_cut")
    page.fill("#note", "the “target” is empty")
    leave(page)
    assert page.inner_text("#progress") == "Row 2 of 25; 2 of 25 marked."
    path = save(page, tmp_path)
    assert path.name == "marks-1.2.0-Ada-L-.json"
    sample = draw_sample(release, json.loads((release / "manifest.json").read_text())["rows"], 960, 0)
    expected = [
        ReviewMark("Ada L.", *sample[0], True, None, ""),
        ReviewMark("Ada L.", *sample[1], False, ReviewReason.WRONG_CUT, "the “target” is empty"),
    ]
    assert read_marks(release, [path]) == sorted(expected, key=lambda mark: (mark.testbed, mark.row_id))

    page.reload()
    assert page.inner_text("#progress") == "Row 1 of 25; 2 of 25 marked."  # kept by the browser
    assert page.get_attribute("#valid", "aria-pressed") == "true"
    page.select_option("#state", "invalid")
    assert page.inner_text("#progress") == "Row 1 of 1; 2 of 25 marked."
    page.evaluate("localStorage.clear()")
    page.reload()
    assert page.inner_text("#progress") == "Row 1 of 25; 0 of 25 marked."
    page.set_input_files("#load", path)
    page.wait_for_function("document.getElementById('progress').textContent.includes('2 of 25 marked')")
    assert page.input_value("#reviewer") == "Ada L."


@NEEDS_BROWSER
def test_marks_need_a_name_and_a_file_of_another_release_is_refused(page: Page, tmp_path: Path) -> None:
    page.keyboard.press("v")
    page.keyboard.press("s")
    assert page.inner_text("#message") == "Give your name first: marks of two reviewers are compared by it."
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"format": "postquem-review/1", "release": {"manifest_sha256": "0"}}))
    page.set_input_files("#load", other)
    page.wait_for_function("document.getElementById('message').textContent.startsWith('other.json')")
    assert page.inner_text("#message") == "other.json was not loaded: it belongs to another release."


@NEEDS_BROWSER
def test_rows_are_shown_as_they_are_and_found_by_name(page: Page, release: Path) -> None:
    page.select_option("#testbed", "commit_gen")
    page.fill("#find", "o/n c.py")
    assert page.inner_text("#progress") == "Row 1 of 1; 0 of 25 marked."
    assert page.locator("#row h3").inner_text() == "b"
    assert page.locator("#row h4").all_inner_texts() == [
        "commit_message", "code (asked for)", "diff",
    ]  # fmt: skip
    [row] = [row for row in pq.read_table(release / "commit_gen").to_pylist() if row["fun_name"] == "b"]
    shown = page.locator("#row pre").nth(1).text_content() or ""
    assert shown.strip() == row["code"].replace("\r\n", "\n").replace("\0", "\N{SYMBOL FOR NULL}").strip()
    page.fill("#find", "nothing of the kind")
    assert page.inner_text("#progress") == "No such row; 0 of 25 marked."
    assert page.is_disabled("#valid")


def test_the_same_release_and_seed_give_the_same_bytes_and_nothing_beside(release: Path, tmp_path: Path) -> None:
    texts = [write_page(release, tmp_path / name, seed=7).path.read_bytes() for name in ("a.html", "b.html")]
    assert texts[0] == texts[1]
    assert re.findall(rb"<(?:link|img|iframe|script src)", texts[0]) == []
    assert write_page(release, tmp_path / "c.html", seed=8).path.read_bytes() != texts[0]


def test_mined_text_cannot_end_the_script_that_holds_it(release: Path, tmp_path: Path) -> None:
    text = write_page(release, tmp_path / "page.html").path.read_text(encoding="utf-8")
    [data] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert not set("<>&") & set(data)
    assert json.loads(data)["format"] == "postquem-review/1"


def test_every_testbed_has_its_share_of_a_small_sample(release: Path) -> None:
    rows = {"raw_data": 6, "random_cut": 4, "from_docstring": 1, "summarization_gen": 0, "exclusions": 3}
    drawn = [name for name, _ in draw_sample(release, rows, 7, 0)]
    assert [(name, drawn.count(name)) for name in dict.fromkeys(drawn)] == [
        ("raw_data", 3), ("random_cut", 3), ("from_docstring", 1),
    ]  # fmt: skip
    smaller = draw_sample(release, rows, 5, 0)
    assert set(smaller) < set(draw_sample(release, rows, 7, 0))  # a larger sample goes on from a smaller one


def test_the_command_writes_beside_the_release_and_never_into_it(release: Path, tmp_path: Path) -> None:
    before = sorted(release.rglob("*"))
    done = CliRunner().invoke(cli, ["report", str(release)])
    assert done.exit_code == 0, done.output
    assert release.with_name("1.2.0.html").is_file()
    assert "25 rows to look at" in done.output
    assert sorted(release.rglob("*")) == before
    with pytest.raises(ConfigError, match="lies in the release folder"):
        write_page(release, release / "page.html")
    with pytest.raises(ConfigError, match=r"is no release: manifest\.json cannot be read"):
        write_page(tmp_path, tmp_path / "page.html")
