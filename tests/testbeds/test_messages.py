import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import DataError
from testbeds.messages import message_reason, read_message, require_meaningful

REASONS = {
    "message_merge": [
        "Merge pull request #12 from octo/fix-parser\n\nRead numbers with underscores as the language allows",
        "Merge branch 'main' into feature/long-name-of-a-branch-that-goes-on-and-on",
        "Merge branches 'one' and 'two' of https://example.org/owner/name",
        "Merge remote-tracking branch 'upstream/main' into release-preparation-branch",
        "Merge commit from fork",
        "Merge tag 'v1.2'",
        "Merge stable into main (#3120)",
        "Merge main",
        "merge master into drawing-of-arches",
        "Merge from upstream",
        "Merged in feature/x (pull request #12)",
        "Auto merge of #123 - someone:branch, r=reviewer",
        'Merge "Add a second reader for the old format of the cache files"',
        "Merge changes I1234567,I7654321 into main",
        "Resolve merge conflicts",
        "fix: merge conflicts in the table of contents",
    ],
    "message_revert": [
        'Revert "Add a reader for the old format of the cache files (#12)"\n\nThis reverts commit 0123abc4567.',
        "revert: feat: add a reader for the old format of the cache files",
        "Reverted the change of the default encoding since it broke readers",
        'Reapply "Add a reader for the old format of the cache files"',
        "Put the old reader of the cache files back\n\nThis reverts commit 0123abc4567def.",
        "Backed out changeset 0123abc4567 because of failing tests on Windows",
    ],
    "message_automatic": [
        "[pre-commit.ci] pre-commit autoupdate (#4974)\n\n* [pre-commit.ci] pre-commit autoupdate\n\nupdates of hooks",
        "[pre-commit.ci lite] apply automatic fixes",
        "[autofix.ci] apply automated fixes",
        "fixup! Read numbers with underscores as the language allows since 3.6",
        "squash! Read numbers with underscores",
        "WIP on main: 0123abc Read numbers with underscores as the language allows",
        "Squashed 'lib/parser/' changes from 0123abc..4567def and more of them",
        "Translated using Weblate (Czech)\n\nCurrently translated at 99.8% (1234 of 1236 strings) of the project",
        "Automated Code Change\n\nPiperOrigin-RevId: 123456789",
        "Update parser.py",
        "Update src/reader/of/the/old/format/of/cache/files/which/is/long.py\n\nCo-authored-by: A B <a@example.org>",
        "Create README.md",
        "Delete scripts/migrate.py (#5319)",
        "Rename docs/index.rst to docs/index.md",
        "Update parser.py, reader.py, and docs/index.md",
        "Add files via upload",
        "Initial commit",
        "Apply suggestions from code review\n\nCo-authored-by: Ada <ada@example.org>",
        "wip",
        "WIP.",
        "update",
    ],
    "message_version_bump": [
        "Bump version to 8.4.dev (#3146)",
        "Bump version: 1.2.3 → 1.2.4",
        "bump version",
        "Bump for development",
        "Release version 8.4.2 (#3631)",
        "Release 8.4.0\n\nThe long list of all the changes that this release brings to its many users.",
        "release: bump version to 0.10.0rc1 (#506)",
        "start version 8.1.6",
        "Prepare for 25.11.0 release (#4825)",
        "Prepare docs for release 24.1.0",
        "v2.34.0.dev1",
        "1.0.0",
        "🔖 Release 1.2.0",
        "update version constants for 35.0.0+snapshot release",
        "Set version to 2.0.0",
        "build(deps): bump build from 1.4.2 to 1.4.3 in /build-project\n\nBumps [build](https://example.org).",
        "Update certifi requirement from >=14.05.14 to >=2026.7.22",
        "Bump actions/checkout from 3 to 4",
        "⬆️ Bump the actions group across 1 directory with 4 updates",
        "Upgrade urllib3 to 2.6.3",
        "chore(deps): update dependency left-pad to v2",
        "📝 Update release notes",
    ],
    "message_issue_only": [
        "#12",
        "fix #12",
        "Fixes #388 (#389)",
        "fix for issue 6604",
        "GH-123",
        "Closes: ABC-123",
        "See https://example.org/owner/name/issues/12345678901234567890123456789012345",
        ":bug: Fix bug (#30)",
    ],
    "message_too_short": [
        "",
        "\n\n",
        "fix",
        "Fix typo",
        "Add tests for the reader",
        "[WIP] Readers (#147)",
        "Fix typo\n\nCo-authored-by: Ada Author <ada@example.org>\nSigned-off-by: Carl Committer <carl@example.org>",
        "Fix typo in the reader [skip ci] (#12345)\n\nCloses https://example.org/owner/name/issues/12345",
        "Restore the reader\n\nRefs: 653459007a15e4d75187acc5a1e1a08cbd787814",
        "Update parser.py\n\nFix typo",
        "one two three four five six seven eight nine ten",
    ],
}
CHINESE = (
    "读取器：支持带下划线的数字，并为旧格式的缓存文件添加第二个读取器，"
    "同时修复在空文件上的崩溃问题以及相关的测试用例和文档"
)
MEANINGFUL = {
    "Fix the parser's handling of nested quotes in f-strings (#123)": (
        "Fix the parser's handling of nested quotes in f-strings"
    ),
    "one two three four five six seven eight nine ten XI": "one two three four five six seven eight nine ten XI",
    "x" * 51: "x" * 51,
    "feat(reader)!: read numbers with underscores as the language allows\r\n\r\nCloses #12\r\n": (
        "feat(reader)!: read numbers with underscores as the language allows"
    ),
    "#33 Fix flaky test of the reader, abstract away the repetition in its set-up": (
        "Fix flaky test of the reader, abstract away the repetition in its set-up"
    ),
    "Update parser.py\n\nRead numbers with underscores as the language allows since 3.6": (
        "Read numbers with underscores as the language allows since 3.6"
    ),
    "WIP: Read numbers with underscores as the language allows, and test them": (
        "Read numbers with underscores as the language allows, and test them"
    ),
    "Add a reader (#9)\n\n* Add a reader\n\n* [pre-commit.ci] auto fixes from pre-commit.com hooks\n\n"
    "---------\n\nCo-authored-by: pre-commit-ci[bot] <1+pre-commit-ci[bot]@users.noreply.example.org>": (
        "Add a reader Add a reader [pre-commit.ci] auto fixes from pre-commit.com hooks"
    ),
    CHINESE: CHINESE,
}
NOT_WHAT_THEY_LOOK_LIKE = [
    "Merge duplicate functions of both readers into one helper module",
    "Merge sorted runs from disk in one pass instead of two passes",
    "Merge _parse_number into _parse_literal, its only caller left",
    "Merge in the defaults before the configuration is validated at all",
    "Bump timeout from 10 to 30 seconds so that slow discs are waited for",
    "Update timeout default from 30 to 60 seconds for the slow workers",
    "Update version parsing to accept local segments with underscores",
    "Set version in the request header when talking to old servers",
    "Release the lock before waiting so that readers do not starve",
    "Release resources in 3.5 seconds at most when the worker is stopped",
    "Version negotiation handles servers that offer HTTP/2 downgrade",
    "Start supporting Python 3.13 in the matrix of the nightly tests",
    "Open files of version 2.1 without converting them in memory first",
    "Prepare the release script for the new layout of the repository",
    "Initial version of the parser that reads numbers with underscores",
    "Back out of the transaction when the second write fails on disk",
    "Tag strings with the language that the docstring was written in",
    "Save the position of the reader so that a second run continues there",
]


def reason_of(text: str) -> str | None:
    try:
        require_meaningful(text, author_is_bot=False)
    except DataError as error:
        return error.reason
    return None


@pytest.mark.parametrize(("reason", "text"), [(reason, text) for reason, texts in REASONS.items() for text in texts])
def test_message_without_meaning_has_its_reason(reason: str, text: str) -> None:
    assert reason_of(text) == reason


@pytest.mark.parametrize("text", MEANINGFUL)
def test_own_words_of_a_meaningful_message(text: str) -> None:
    assert require_meaningful(text, author_is_bot=False) == MEANINGFUL[text]


@pytest.mark.parametrize("text", NOT_WHAT_THEY_LOOK_LIKE)
def test_message_that_only_looks_automatic_is_kept(text: str) -> None:
    assert require_meaningful(text, author_is_bot=False) == text


@pytest.mark.parametrize("text", MEANINGFUL)
def test_bots_are_left_out_whatever_they_say(text: str) -> None:
    with pytest.raises(DataError) as caught:
        require_meaningful(text, author_is_bot=True)
    assert caught.value.reason == "message_bot"


def test_detail_tells_the_measured_size() -> None:
    with pytest.raises(DataError) as caught:
        require_meaningful("Add tests for the reader (#12)", author_is_bot=False)
    assert caught.value.detail == "5 words and 24 characters of its own"


def test_parts_of_a_message() -> None:
    message = read_message(
        "\n:bug: fix(reader): Read numbers. (#12)\n\nThey had\t1 sign.\n\nFixes: #3, GH-4\nSigned-off-by: A <a@b.org>\n"
    )
    assert message.subject == "Read numbers"
    assert message.words == ("fix(reader):", "Read", "numbers.", "They", "had", "1", "sign.")
    assert message.body_words == ("They", "had", "1", "sign.")
    assert message.has_reference


@given(st.text())
def test_any_text_is_either_meaningful_or_has_one_of_the_reasons(text: str) -> None:
    assert reason_of(text) in {*REASONS, None}
    assert message_reason(read_message(text)) in {*REASONS, None} - {"message_too_short"}


@given(st.sampled_from(sorted(MEANINGFUL)), st.sampled_from(["\n", "\r\n", "\n\n\n", " \t"]))
def test_white_space_around_a_message_does_not_matter(text: str, space: str) -> None:
    assert require_meaningful(space + text + space, author_is_bot=False) == MEANINGFUL[text]
