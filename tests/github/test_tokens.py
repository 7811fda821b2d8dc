"""Where tokens come from."""

from pathlib import Path

import pytest

from miners.github_tokens import find_tokens

HOSTS = """github.com:
    users:
        ada:
            oauth_token: gho_of_gh
    git_protocol: https
    user: ada
    oauth_token: gho_of_gh
git.example.org:
    oauth_token: other
"""


@pytest.mark.parametrize(
    ("stated", "tokens"),
    [
        ("one", ("one",)),
        ("one,two", ("one", "two")),
        (" one , two ,, one", ("one", "two")),
        ("", ()),
        (" , ", ()),
    ],
)
def test_the_environment_holds_one_or_several(stated: str, tokens: tuple[str, ...]) -> None:
    assert find_tokens("github.com", {"GITHUB_TOKEN": stated}) == tokens


@pytest.mark.parametrize("variable", ["GH_CONFIG_DIR", "XDG_CONFIG_HOME", "HOME"])
def test_else_the_gh_command_knows_one(tmp_path: Path, variable: str) -> None:
    folder = {"GH_CONFIG_DIR": "", "XDG_CONFIG_HOME": "gh", "HOME": ".config/gh"}[variable]
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / folder / "hosts.yml").write_text(HOSTS)
    environment = {variable: str(tmp_path)}
    assert find_tokens("github.com", environment) == ("gho_of_gh",)
    assert find_tokens("git.example.org", environment) == ("other",)
    assert find_tokens("elsewhere.org", environment) == ()
    assert find_tokens("github.com", environment | {"GITHUB_TOKEN": "mine"}) == ("mine",)


@pytest.mark.parametrize("text", ["", "- a", "github.com: x", "github.com:\n  oauth_token: 7", "a: [", "\ud800"])
def test_a_file_that_holds_none_gives_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "hosts.yml").write_bytes(text.encode("utf-8", "surrogatepass"))
    assert find_tokens("github.com", {"GH_CONFIG_DIR": str(tmp_path)}) == ()


def test_without_any_there_is_none(tmp_path: Path) -> None:
    assert find_tokens("github.com", {"HOME": str(tmp_path)}) == find_tokens("github.com", {}) == ()
