import ast
from math import isqrt
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miners.git_process import ObjectReader
from miners.sources import SourceFile, decode_source, load_source
from miners.syntax import MAX_COMMENT_RUN_COST, _comment_run_cost, check_comment_runs
from schemas.errors import DataError
from tests.builders import RepoBuilder

BLOB = "b" * 40
BOM = b"\xef\xbb\xbf"


def refused(raw: bytes) -> str:
    with pytest.raises(DataError) as error:
        decode_source(BLOB, raw)
    return error.value.reason


class TestEncodings:
    @pytest.mark.parametrize(
        ("raw", "text", "encoding"),
        [
            (b"", "", "utf-8"),
            (b"x = 1\n", "x = 1\n", "utf-8"),
            ("s = 'ß'\n".encode(), "s = 'ß'\n", "utf-8"),
            (BOM + b"x = 1\n", "\ufeffx = 1\n", "utf-8-sig"),
            (BOM + b"# coding: utf-8\n", "\ufeff# coding: utf-8\n", "utf-8-sig"),
            (b"# coding: latin-1\ns = '\xdf'\n", "# coding: latin-1\ns = 'ß'\n", "iso-8859-1"),
            (b"#!/usr/bin/python\n# -*- coding: iso-8859-1 -*-\n#\xdf\n", None, "iso-8859-1"),
            (
                b"# vim: set fileencoding=cp1252 :\ns = '\x80'\n",
                "# vim: set fileencoding=cp1252 :\ns = '€'\n",
                "cp1252",
            ),
            (b"\n# coding: latin-1\n'\xdf'", "\n# coding: latin-1\n'ß'", "iso-8859-1"),
            (b"\r\n# coding: latin-1\r\n'\xdf'\r\n", "\r\n# coding: latin-1\r\n'ß'\r\n", "iso-8859-1"),
            (b"# coding: latin-1\r'\xdf'\r", "# coding: latin-1\r'ß'\r", "iso-8859-1"),
            ("# coding: shift_jis\ns = '日本'\n".encode("shift_jis"), "# coding: shift_jis\ns = '日本'\n", "shift_jis"),
            (b"x = 1\r\ny = 2\rz = 3\n", "x = 1\r\ny = 2\rz = 3\n", "utf-8"),
            (b"x = 1\x0c\n", "x = 1\x0c\n", "utf-8"),
        ],
    )
    def test_what_python_reads(self, raw: bytes, text: str | None, encoding: str) -> None:
        source = decode_source(BLOB, raw)
        text = raw.decode("latin-1") if text is None else text
        assert source == SourceFile(BLOB, raw, text.encode(), encoding)

    def test_a_cookie_in_the_third_line_is_none(self) -> None:
        assert refused(b"\n\n# coding: latin-1\n'\xdf'\n") == "undecodable"

    def test_a_cookie_behind_code_is_none(self) -> None:
        assert refused(b"x = 1\n# coding: latin-1\n'\xdf'\n") == "undecodable"

    @pytest.mark.parametrize(
        "raw",
        [
            b"s = '\xdf'\n",
            b"x = 1\n" * 100 + b"\xff\n",
            b"# coding: no-such-codec\n",
            b"# coding: utf-8\n'\xdf'\n",
            BOM + b"# coding: latin-1\n",
            b"# coding: ascii\n'\xdf'\n",
            b"# coding: rot13\n",
            b"# coding: hex\n",
            b"# coding: undefined\n",
            b"# coding: utf-7\ns = '+2AA-'\n",
            b"# coding: shift_jis\n'\x81'\n",
            b"# coding: ../../etc/passwd\n\xff",
        ],
    )
    def test_what_python_refuses(self, raw: bytes) -> None:
        assert refused(raw) == "undecodable"
        with pytest.raises((SyntaxError, UnicodeEncodeError)):
            ast.parse(raw).body[0].value.value.encode()  # type: ignore[attr-defined] # a lone surrogate gets this far

    @pytest.mark.parametrize("raw", [b"x\0", "x = 1\n".encode("utf-16"), b"\0" * 10])
    def test_nul_bytes_are_binary(self, raw: bytes) -> None:
        assert refused(raw) == "binary"

    def test_lfs_pointers(self) -> None:
        pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"
        assert refused(pointer) == "lfs_pointer"
        assert decode_source(BLOB, b"# " + pointer).encoding == "utf-8"

    @given(st.binary(max_size=120))
    def test_any_bytes_are_read_or_refused_with_a_reason(self, raw: bytes) -> None:
        reason, source = "", None
        try:
            source = decode_source(BLOB, raw)
        except DataError as error:
            reason = error.reason
        assert (source is None) == (reason in {"binary", "lfs_pointer", "undecodable"})
        assert source is None or source.raw == raw
        assert source is None or isinstance(source.utf8.decode("utf-8"), str)


class TestOffsets:
    def test_utf8_offsets_are_the_blobs(self) -> None:
        source = decode_source(BLOB, BOM + "s = 'ß'\nx = 1\n".encode())
        assert [source.raw_offset(offset) for offset in (0, 3, 12, 18)] == [0, 3, 12, 18]

    @pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "shift_jis", "euc_jp", "gb18030", "iso2022_jp", "utf-7"])
    def test_every_character_leads_back_to_its_bytes(self, encoding: str) -> None:
        letters = "aß" if encoding in ("latin-1", "cp1252") else "a日本語b"
        lines = [f"# coding: {encoding}", f"first = '{letters}'", "def f():", f"    return '{letters}'", ""]
        raw = "\n".join(lines).encode(encoding)
        source = decode_source(BLOB, raw)
        start, end = source.utf8.index(b"def f"), len(source.utf8)
        assert raw[source.raw_offset(start) : source.raw_offset(end)] == "\n".join(lines[2:]).encode(encoding)
        assert source.raw_offset(len(source.utf8)) == len(raw)

    @given(st.text(st.characters(codec="latin-1", exclude_characters="\0"), max_size=60), st.data())
    def test_latin1_offsets_cut_the_same_text(self, text: str, data: st.DataObject) -> None:
        head = "# coding: latin-1\n"
        source = decode_source(BLOB, (head + text).encode("latin-1"))
        cut = data.draw(st.integers(0, len(text)))
        offset = len((head + text[:cut]).encode())
        assert source.raw[: source.raw_offset(offset)].decode("latin-1") == head + text[:cut]

    def test_crlf_lines_keep_their_bytes(self) -> None:
        raw = b"# coding: latin-1\r\ns = '\xdf'\r\ndef f():\r\n    pass\r\n"
        source = decode_source(BLOB, raw)
        start = source.raw_offset(source.utf8.index(b"def"))
        assert raw[start:] == b"def f():\r\n    pass\r\n"

    def test_offsets_of_a_large_file(self) -> None:
        method = b"def f():\n    return '\xdf'\n"
        source = decode_source(BLOB, b"# coding: latin-1\n" + method * 20_000)
        length = len(method) + 1  # the sharp s takes two bytes in UTF-8
        starts = [18 + index * length for index in range(20_000)]
        assert [source.raw_offset(start) for start in starts] == [18 + index * (length - 1) for index in range(20_000)]

    def test_the_file_is_decoded_once_for_all_offsets(self, monkeypatch: pytest.MonkeyPatch) -> None:
        source = decode_source(BLOB, b"# coding: latin-1\n'\xdf' + a\n")
        monkeypatch.setattr("codecs.getincrementaldecoder", None)
        assert [source.raw_offset(offset) for offset in (0, 18, 19, 21, 22, 23)] == [0, 18, 19, 20, 21, 22]

    def test_a_shift_sequence_that_never_ends_is_refused(self) -> None:
        cookie = b"# coding: utf-7\n"
        assert decode_source(BLOB, cookie + b"# +" + b"ZeU-" * 4_000).encoding == "utf-7"
        assert refused(cookie + b"# +" + b"ZeVnLIqe" * 100_000 + b"-\n") == "undecodable"

    def test_an_encoding_without_a_way_back_is_refused(self) -> None:
        assert refused(b"# coding: punycode\nx-\n") == "undecodable"


class TestCommentRuns:
    LINE = b"    # 4567890123456\n"  # 20 bytes

    def is_refused(self, source: bytes) -> bool:
        try:
            check_comment_runs(source)
        except DataError as error:
            return error.reason == "comment_run_too_long"
        return False

    @pytest.mark.parametrize("end", [b"", b"    return 1\n"])
    def test_the_limit_is_on_lines_times_bytes(self, end: bytes) -> None:
        longest = isqrt(MAX_COMMENT_RUN_COST // len(self.LINE))
        assert not self.is_refused(b"def f():\n" + self.LINE * longest + end)
        assert self.is_refused(b"def f():\n" + self.LINE * (longest + 1) + end)

    def test_the_runs_of_a_file_are_summed(self) -> None:
        run = self.LINE * 1_000 + b"    return 1\n"
        n_runs = MAX_COMMENT_RUN_COST // (len(self.LINE) * 1_000**2)
        assert not self.is_refused(b"def f():\n" + run * n_runs)
        assert self.is_refused(b"def f():\n" + run * (n_runs + 1))

    @pytest.mark.parametrize("line", [b"\n", b"    a = 1  # one\n", b"    1 + \\\n", b"   \t \r\n"])
    def test_other_lines_may_be_many(self, line: bytes) -> None:
        assert not self.is_refused(b"def f():\n" + line * 100_000)

    @given(st.lists(st.sampled_from([b"#", b"\\", b" ", b"\t", b"\f", b"\v", b"\n", b"\n", b"\r", b"x"]), max_size=14),
           st.sampled_from([1, 2, 64]))  # fmt: skip
    def test_no_run_costs_more_than_the_quick_bound(self, pieces: list[bytes], short: int) -> None:
        source = b"".join(pieces)
        cost = _comment_run_cost(source)
        for limit in (0, 10, 20, 40):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("miners.syntax._SHORT_RUN", short)
                patch.setattr("miners.syntax.MAX_COMMENT_RUN_COST", limit)
                assert self.is_refused(source) == (cost > limit)

    def test_many_short_runs_are_told_without_looking_at_each_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("miners.syntax._comment_run_cost", None)
        assert not self.is_refused(b"def f():\n" + (self.LINE * 64 + b"    return 1\n") * 1_000)

    def test_comments_before_all_code_may_be_many(self) -> None:
        assert not self.is_refused(self.LINE * 100_000 + b"x = 1\n")

    def test_a_lone_carriage_return_ends_a_line(self) -> None:
        assert self.is_refused(b"def f():\r" + b"    # x\r" * 100_000)


class TestLoading:
    @pytest.fixture
    def repo(self, tmp_path: Path) -> RepoBuilder:
        return RepoBuilder(tmp_path / "repo.git")

    def reason(self, repo: RepoBuilder, blob_id: str, limit: int = 1_000) -> str:
        with ObjectReader(repo.git_dir) as reader, pytest.raises(DataError) as error:
            load_source(reader, blob_id, limit)
        return error.value.reason

    def test_reads_up_to_the_limit(self, repo: RepoBuilder) -> None:
        blob = repo.blob(b"x" * 10)
        with ObjectReader(repo.git_dir) as reader:
            assert load_source(reader, blob, 10) == SourceFile(blob, b"x" * 10, b"x" * 10, "utf-8")
        assert self.reason(repo, blob, 9) == "file_too_large"

    def test_a_missing_blob(self, repo: RepoBuilder) -> None:
        blob = repo.blob(b"x")
        repo.remove(blob)
        assert self.reason(repo, blob) == "blob_missing"

    def test_a_corrupt_blob(self, repo: RepoBuilder) -> None:
        blob = repo.blob(b"x")
        repo.corrupt(blob)
        assert self.reason(repo, blob) == "object_corrupt"

    def test_an_object_that_is_no_blob(self, repo: RepoBuilder) -> None:
        assert self.reason(repo, repo.root_tree(repo.commit({"a.py": b"x"}))) == "object_corrupt"

    @pytest.mark.parametrize("line", [b"    # x = 1\n", b"\\\n", b"# x = 1\r\n\r\n"])
    def test_a_run_of_lines_that_the_parser_takes_hours_for(self, repo: RepoBuilder, line: bytes) -> None:
        blob = repo.blob(b"def f():\n" + line * 500_000 + b"    return 1\n")
        assert self.reason(repo, blob, 10_000_000) == "comment_run_too_long"

    def test_a_refused_one(self, repo: RepoBuilder) -> None:
        assert self.reason(repo, repo.blob(b"\xff")) == "undecodable"
