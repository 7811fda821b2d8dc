"""What git's words mean, and what is tried again."""

from pathlib import Path

import pytest

import miners.remote
from miners.git_answers import Pauses
from miners.places import Place
from miners.rate_limit import Answer
from miners.remote import Done, Limits, ask, folder_size, meaning
from schemas.errors import ConfigError, DataError, PipelineError, RefusedError, SourceError, UnreachableError
from tests.github.server import FakeClock

PLACE = Place("https", "https://host.example/o/r", "host.example", "o", "r", None, None, None)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("fatal: could not read Username for 'https://host.example': terminal prompts disabled", SourceError),
        ("fatal: repository 'https://host.example/o/r/' not found", SourceError),
        ("error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502", UnreachableError),
        ("fatal: unable to access 'https://host.example/': Could not resolve host", UnreachableError),
        ("error: RPC failed; curl 56 GnuTLS recv error; fatal: early EOF", UnreachableError),
        ("fatal: unable to access 'https://host.example/': The requested URL returned error: 403", RefusedError),
        ("fatal: write error: No space left on device", PipelineError),
        ("fatal: remote error: upload-pack: not our ref 0123", DataError),
    ],
)
def test_what_git_says(words: str, kind: type[PipelineError]) -> None:
    assert type(meaning(PLACE, words)) is kind


def answers(monkeypatch: pytest.MonkeyPatch, *results: tuple[int, str, str] | Done) -> tuple[list[float], list[str]]:
    """Have git answer so; return the pauses made and the commands run, as they come."""
    slept, asked, left = list[float](), list[str](), list(results)

    def run(cwd: Path, args: tuple[str, ...], limits: Limits, input: bytes) -> Done:
        asked.append(args[0])
        return Done(*left.pop(0))

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


class TestLimitsOfHosts:
    LIMIT = Done(128, "", "fatal: error: 429", Answer(429, {"retry-after": "90"}, ""))

    @pytest.fixture
    def told(self, monkeypatch: pytest.MonkeyPatch) -> tuple[FakeClock, list[str]]:
        clock, told = FakeClock(), list[str]()
        monkeypatch.setattr("miners.git_answers.HOSTS", Pauses(clock.now, clock.sleep, told.append))
        return clock, told

    def test_a_pause_is_no_fault(
        self, told: tuple[FakeClock, list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """As many as a host wants, beside all the faults that are borne."""
        fault = (128, "", "fatal: early EOF")
        slept, asked = answers(monkeypatch, *[self.LIMIT] * 9, *[fault] * 7, (0, "done", ""))
        assert ask(PLACE, tmp_path, "fetch") == "done"
        assert (told[0].slept, len(told[1]), len(slept), len(asked)) == ([90] * 9, 9, 7, 17)
        assert told[1][0].startswith("  host.example: the limit for git is used up; resumes at ")

    def test_all_requests_to_the_host_keep_it(
        self, told: tuple[FakeClock, list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        miners.git_answers.HOSTS.begin("host.example", 30)
        miners.git_answers.HOSTS.begin("other.example", 3_000)
        answers(monkeypatch, (0, "done", ""))
        assert (ask(PLACE, tmp_path, "fetch"), told[0].slept) == ("done", [30])

    def test_a_limit_that_holds_on_ends_it(
        self, told: tuple[FakeClock, list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        answers(monkeypatch, *[self.LIMIT] * 3)
        with pytest.raises(UnreachableError, match=r"limit holds on, status 429; .* allows 4 minutes of waiting"):
            ask(PLACE, tmp_path, "fetch", limits=Limits(timeout=240))
        assert told[0].slept == [90, 90]

    def test_a_host_that_states_no_time_is_not_asked_without_end(
        self, told: tuple[FakeClock, list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        _, asked = answers(monkeypatch, *[Done(128, "", "", Answer(429, {"retry-after": "0"}, ""))] * 99)
        with pytest.raises(UnreachableError, match=r"limit holds on, status 429; .* allows 60 minutes of waiting"):
            ask(PLACE, tmp_path, "fetch")
        assert (len(asked), told[0].slept[:5], told[0].slept[-1]) == (16, [0.125, 0.25, 0.5, 1, 2], 900)

    @pytest.mark.parametrize(
        ("answer", "kind", "words", "n_pauses"),
        [
            (Answer(403, {}, ""), RefusedError, "is refused", 3),
            (Answer(403, {}, "Your account is suspended."), RefusedError, "is refused", 3),
            (Answer(451, {}, ""), DataError, "repository_blocked: https://host.example/o/r: its host answered 451", 0),
            (Answer(403, {}, "Repository unavailable due to DMCA takedown."), DataError, "repository_blocked", 0),
            (Answer(403, {}, "Access to this repository is disabled"), DataError, "answered 403: Acc", 0),
            (Answer(503, {}, ""), UnreachableError, "503", 7),
        ],
    )  # fmt: skip
    def test_a_refusal_is_no_limit(
        self, told: tuple[FakeClock, list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
        answer: Answer, kind: type[PipelineError], words: str, n_pauses: int,
    ) -> None:  # fmt: skip
        stderr = f"fatal: unable to access 'x': The requested URL returned error: {answer.status}"
        slept, _ = answers(monkeypatch, *[Done(128, "", stderr, answer)] * 9)
        with pytest.raises(kind, match=words):
            ask(PLACE, tmp_path, "fetch")
        assert (told[0].slept, len(slept)) == ([], n_pauses)


def test_the_size_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"123")
    (tmp_path / "c").write_bytes(b"4567")
    assert folder_size(tmp_path) == 7
