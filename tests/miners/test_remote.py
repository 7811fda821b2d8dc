"""What git's words mean, and what is tried again."""

from pathlib import Path

import pytest

import miners.remote
from miners.places import Place
from miners.remote import Limits, ask, folder_size, meaning
from schemas.errors import ConfigError, DataError, PipelineError, UnreachableError

PLACE = Place("https", "https://host.example/o/r", "host.example", "o", "r", None, None, None)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("fatal: could not read Username for 'https://host.example': terminal prompts disabled", ConfigError),
        ("fatal: repository 'https://host.example/o/r/' not found", ConfigError),
        ("error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502", UnreachableError),
        ("fatal: unable to access 'https://host.example/': Could not resolve host", UnreachableError),
        ("error: RPC failed; curl 56 GnuTLS recv error; fatal: early EOF", UnreachableError),
        ("fatal: write error: No space left on device", PipelineError),
        ("fatal: remote error: upload-pack: not our ref 0123", DataError),
    ],
)
def test_what_git_says(words: str, kind: type[PipelineError]) -> None:
    assert type(meaning(PLACE, words)) is kind


def answers(monkeypatch: pytest.MonkeyPatch, *results: tuple[int, str, str]) -> tuple[list[float], list[str]]:
    """Have git answer so; return the pauses made and the commands run, as they come."""
    slept, asked, left = list[float](), list[str](), list(results)

    def run(cwd: Path, args: tuple[str, ...], limits: Limits, input: bytes) -> tuple[int, str, str]:
        asked.append(args[0])
        return left.pop(0)

    monkeypatch.setattr(miners.remote, "_run_watched", run)
    monkeypatch.setattr(miners.remote.time, "sleep", slept.append)
    return slept, asked


def test_a_fault_is_tried_again_with_growing_pauses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fault = (128, "", "fatal: early EOF")
    slept, asked = answers(monkeypatch, fault, fault, fault, (0, "done", ""))
    assert ask(PLACE, tmp_path, "fetch") == "done"
    assert (slept, asked) == ([0.2, 0.4, 0.8], ["fetch"] * 4)


def test_a_fault_that_stays_is_told_in_the_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    slept, asked = answers(monkeypatch, *[(128, "", "fatal: early EOF")] * 8)
    with pytest.raises(UnreachableError, match="early EOF"):
        ask(PLACE, tmp_path, "fetch")
    assert (len(slept), len(asked), sum(slept)) == (7, 8, pytest.approx(25.4))


def test_a_refusal_is_believed_after_some_tries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    refused = (128, "", "fatal: unable to access 'https://host.example/': The requested URL returned error: 403")
    slept, _ = answers(monkeypatch, *[refused] * 4)
    with pytest.raises(ConfigError, match="is refused"):
        ask(PLACE, tmp_path, "fetch")
    assert len(slept) == 3
    slept, _ = answers(monkeypatch, (128, "", "fatal: repository 'https://host.example/' not found"))
    with pytest.raises(ConfigError, match="does not exist"):
        ask(PLACE, tmp_path, "fetch")
    assert slept == []


def test_the_size_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"123")
    (tmp_path / "c").write_bytes(b"4567")
    assert folder_size(tmp_path) == 7
