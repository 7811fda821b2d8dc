from collections.abc import Mapping

import pytest

from miners.alike import similarity
from miners.methods import MethodSpan
from miners.novelty import (
    Classified,
    DefinitionStore,
    Earlier,
    FileDefinitions,
    Likeness,
    ParentView,
    classify,
)
from schemas.errors import DataError
from schemas.records import Novelty

BODY = "(self, n):\n    total = n * 2\n    return total"
Tree = dict[str, str]


class Blobs:
    """A store over texts; a blob's id is its text, so that tests read easily."""

    def __init__(self, *, noted: bool = False) -> None:
        self.loads: list[str] = []
        self.noted = noted
        self.store = DefinitionStore(self.load)

    def load(self, blob_id: str) -> bytes:
        self.loads.append(blob_id)
        if blob_id.startswith("missing"):
            raise DataError("blob_missing", blob_id)
        return blob_id.encode()

    def parent(self, path: str, tree: Tree) -> ParentView:
        paths: dict[str, list[str]] = {}
        for name, text in sorted(tree.items()):
            paths.setdefault(text, []).append(name)
            (self.store.note if self.noted else self.store.file)(text)
        file = self.store.file(tree[path]) if path in tree else None
        return ParentView("c" * 40, path, file, lambda span: self.store.find(self.after, span, paths))

    def classes(
        self, text: str, *trees: Tree, path: str = "a.py", mark: Novelty | None = None
    ) -> Mapping[str, tuple[str, str | None, str | None]]:
        """Return {name: (class, earlier path, earlier name)} of a file after, against parents' trees."""
        self.after = text
        parents = [self.parent(path, tree) for tree in trees]
        return {
            item.span.fun_name: (item.novelty.value, *((earlier.path, earlier.fun_name) if earlier else (None, None)))
            for item in classify(self.store.file(text), parents, mark, self.compare)
            for earlier in [item.earlier]
        }

    def compare(self, span: MethodSpan, file: FileDefinitions, old: MethodSpan) -> Likeness:
        return self.store.compare(self.after, span, file.blob_id, old)


def classes(
    text: str, *trees: Tree, path: str = "a.py", mark: Novelty | None = None
) -> Mapping[str, tuple[str, str | None, str | None]]:
    found = Blobs().classes(text, *trees, path=path, mark=mark)
    assert Blobs(noted=True).classes(text, *trees, path=path, mark=mark) == found  # parsed only where it has to be
    return found


class TestAgainstOneParent:
    def test_new_code_is_added(self) -> None:
        assert classes(f"def f{BODY}\n", {"a.py": "x = 1\n"}) == {"f": ("added", None, None)}

    def test_a_root_commit_adds_everything(self) -> None:
        assert classes(f"def f{BODY}\n") == {"f": ("added", None, None)}

    def test_equal_bytes_are_no_row_wherever_they_stand_in_the_file(self) -> None:
        assert classes(f"x = 1\n\n\ndef f{BODY}\n", {"a.py": f"def f{BODY}\n"}) == {}

    def test_other_tokens_under_the_same_name_are_modified(self) -> None:
        before = {"a.py": f"def f{BODY}\n"}
        assert classes(f"def f{BODY} + 1\n", before) == {"f": ("modified", "a.py", "f")}

    @pytest.mark.parametrize(
        "text",
        [
            f"def f{BODY}\n".replace("n * 2", "n*2"),
            f"def f{BODY}\n".replace("\n    total", "\n    # why\n    total"),
            f"def f{BODY}\n".replace("\n    total", "\n    '''doc'''\n    total"),
        ],
    )
    def test_equal_tokens_under_the_same_name_are_reformatted(self, text: str) -> None:
        assert classes(text, {"a.py": f"def f{BODY}\n"}) == {"f": ("reformatted", "a.py", "f")}

    def test_modified_even_when_the_new_tokens_stood_elsewhere(self) -> None:
        before = {"a.py": "def f(): pass\n", "b.py": f"def f{BODY}\n"}
        assert classes(f"def f{BODY}\n", before) == {"f": ("modified", "a.py", "f")}

    def test_accessors_of_one_name_match_any(self) -> None:
        getter = "class A:\n    @property\n    def x(self): return self._x\n"
        setter = "    @x.setter\n    def x(self, value): self._x = value\n"
        assert classes(getter + setter, {"a.py": getter}) == {"A.x": ("modified", "a.py", "A.x")}
        assert classes(getter + setter, {"a.py": getter + setter.replace(" = ", "=")}) == {
            "A.x": ("reformatted", "a.py", "A.x")
        }

    def test_moved_from_another_file(self) -> None:
        before = {"a.py": "", "b.py": f"def f{BODY}\n"}
        assert classes(f"def f{BODY}  # here\n", before) == {"f": ("moved", "b.py", "f")}

    def test_moved_within_the_file_to_a_class(self) -> None:
        inside = "class A:\n    def f" + BODY.replace("\n", "\n    ") + "\n"
        assert classes(inside, {"a.py": f"def f{BODY}\n"}) == {"A.f": ("moved", "a.py", "f")}

    def test_moved_out_of_a_function(self) -> None:
        outer = "def g():\n    def f" + BODY.replace("\n", "\n    ") + "\n    return f\n"
        before = {"a.py": outer}
        assert classes(outer + f"def f{BODY}\n", before) == {"f": ("moved", "a.py", "g.<locals>.f")}

    def test_copied_with_the_whole_file(self) -> None:
        text = f"def f{BODY}\n"
        assert classes(text, {"b.py": text}) == {"f": ("moved", "b.py", "f")}

    def test_evidence_is_the_smallest_path_then_the_first_definition(self) -> None:
        text = f"def f{BODY}\n"
        before = {"c.py": text, "b.py": f"class B:\n  def f(self): pass\n{text}\nif x:\n    pass\n{text}"}
        assert classes(f"y = 1\n{text}", before) == {"f": ("moved", "b.py", "f")}

    def test_renamed(self) -> None:
        assert classes(f"def g{BODY}\n", {"a.py": f"def f{BODY}\n"}) == {"g": ("renamed", "a.py", "f")}

    def test_a_move_is_better_evidence_than_a_rename(self) -> None:
        before = {"a.py": f"def f{BODY}\n", "b.py": f"class Z:\n    def g{BODY}\n".replace("\n    ", "\n        ")}
        before["b.py"] = before["b.py"].replace("        def", "    def")
        assert classes(f"def g{BODY}\n", before) == {"g": ("moved", "b.py", "Z.g")}

    def test_a_renamed_recursion(self) -> None:
        text = "def fact(n):\n    return n * fact(n - 1) if n else 1\n"
        assert classes(text.replace("fact", "factorial"), {"a.py": text}) == {"factorial": ("renamed", "a.py", "fact")}

    def test_a_body_under_another_block_structure_is_added(self) -> None:
        before = {"a.py": "def g(x):\n    if x:\n        a()\n        b()\n"}
        assert classes("def f(x):\n    if x:\n        a()\n    b()\n", before) == {"f": ("added", None, None)}

    def test_a_file_with_another_old_path(self) -> None:
        blobs = Blobs()
        blobs.after = f"def f{BODY} + 1\n"
        view = ParentView("c" * 40, "old.py", blobs.store.file(f"def f{BODY}\n"), lambda span: None)
        (item,) = classify(blobs.store.file(blobs.after), [view], None, blobs.compare)
        assert item.earlier == Earlier(Novelty.MODIFIED, "old.py", "f", 13 / 15, "c" * 40)


class TestMarks:
    @pytest.mark.parametrize("mark", [Novelty.VENDORED, Novelty.GENERATED])
    def test_a_marked_file_has_no_other_class(self, mark: Novelty) -> None:
        before = {"a.py": f"def f{BODY}\ndef same(): pass\n"}
        after = f"def f{BODY} + 1\ndef g(): return 1\ndef same(): pass\n"
        assert classes(after, before, mark=mark) == {"f": (mark.value, None, None), "g": (mark.value, None, None)}


class TestMerges:
    TEXT = f"def f{BODY}\n"

    def test_what_any_parent_has_is_no_row(self) -> None:
        assert classes(self.TEXT, {"a.py": ""}, {"a.py": self.TEXT}) == {}

    def test_new_to_every_parent_is_added(self) -> None:
        assert classes(self.TEXT, {"a.py": ""}, {"a.py": "x = 1\n"}) == {"f": ("added", None, None)}

    def test_the_oldest_class_wins(self) -> None:
        trees = [{"a.py": "x = 1\n"}, {"b.py": self.TEXT}]
        assert classes(self.TEXT, *trees) == {"f": ("moved", "b.py", "f")}
        trees = [{"b.py": self.TEXT}, {"a.py": "def f(): pass\n"}]
        assert classes(self.TEXT, *trees) == {"f": ("modified", "a.py", "f")}
        trees = [{"a.py": "def f(): pass\n"}, {"a.py": self.TEXT.replace(" * ", "*")}]
        assert classes(self.TEXT, *trees) == {"f": ("reformatted", "a.py", "f")}
        trees = [{"a.py": f"def g{BODY}\n"}, {"a.py": "x = 1\n"}, {"c.py": "y = 2\n"}]
        assert classes(self.TEXT, *trees) == {"f": ("renamed", "a.py", "g")}


class TestStore:
    def test_every_blob_is_read_once_for_its_definitions(self) -> None:
        blobs = Blobs()
        for _ in range(3):
            assert [span.fun_name for span in blobs.store.file("def f(): pass\n").methods] == ["f"]
        assert blobs.loads == ["def f(): pass\n"]

    def test_an_unreadable_blob_gives_the_same_error_each_time(self) -> None:
        blobs = Blobs()
        for _ in range(2):
            with pytest.raises(DataError) as error:
                blobs.store.file("missing 1")
            assert (error.value.reason, error.value.detail) == ("blob_missing", "missing 1")
        assert blobs.loads == ["missing 1"]
        assert blobs.store.knows("missing 1")

    def test_what_is_not_in_the_tree_is_not_found(self) -> None:
        store = Blobs().store
        old, new = "def f(): return 1\n", "\ndef f(): return 1\n"
        store.file(old)
        (span,) = store.file(new).methods
        assert store.find(new, span, {}) is None
        assert store.find(new, span, {old: ["z.py", "y.py"]}) == Earlier(Novelty.MOVED, "y.py", "f", 1.0)

    def test_nothing_may_be_found_where_only_the_fresh_blob_has_the_tokens(self) -> None:
        store = Blobs().store
        (span,) = store.file("def f(): return 1\n").methods
        assert not store.may_find("def f(): return 1\n", span, fresh=True)
        assert store.may_find("def f(): return 1\n", span, fresh=False)
        store.file("def g(): return 1\n")
        assert store.may_find("def f(): return 1\n", span, fresh=True)

    def test_a_noted_blob_is_parsed_when_it_may_hold_the_tokens(self) -> None:
        blobs = Blobs()
        store, new = blobs.store, "def f(): return 1\n"
        texts = ["def f(): return 2\n", "def g(): return 1\n", "class A:\n    def f(): return 1\n"]
        for text in texts:
            store.note(text)
        (span,) = store.file(new).methods
        blobs.loads.clear()
        assert store.may_find(new, span, fresh=True)
        tree = {text: [f"{place}.py"] for place, text in enumerate(texts)}
        assert store.find(new, span, tree) == Earlier(Novelty.MOVED, "2.py", "A.f", 1.0)
        assert set(blobs.loads) == {new, texts[2]}
        assert store.find(new, span, {texts[1]: ["1.py"]}) == Earlier(Novelty.RENAMED, "1.py", "g", 6 / 8)

    def test_a_noted_blob_that_is_unreadable(self) -> None:
        blobs = Blobs()
        for _ in range(2):
            with pytest.raises(DataError) as error:
                blobs.store.note("missing 1")
            assert (error.value.reason, error.value.detail) == ("blob_missing", "missing 1")
        assert blobs.loads == ["missing 1"]

    def test_definitions_of_unknown_scope_are_kept_apart(self) -> None:
        file = Blobs().store.file("def g(): pass\nx = [\n    def m(self):\n        return 1\n")
        assert [span.fun_name for span in file.methods] == ["g"]
        assert [span.fun_name for span in file.scopeless] == ["m"]


def test_rows_come_in_source_order() -> None:
    blobs = Blobs()
    blobs.after = "def b(): return 1\ndef a(): return 2\nclass C:\n    def c(self): return 3\n"
    found = classify(blobs.store.file(blobs.after), [], None, blobs.compare)
    assert [item.span.fun_name for item in found] == ["b", "a", "C.c"]
    assert found[0] == Classified(found[0].span, Novelty.ADDED, None)


class TestSimilarity:
    @pytest.mark.parametrize(
        ("one", "other", "expected"),
        [
            (b"def f(a): pass", b"def f(a): pass", 1.0),
            (b"def f(a): pass", b"def  f( a ):\n\tpass", 1.0),
            (b"def f(a): pass", b"def g(a): pass", 6 / 8),  # def ( a ) : pass of def f g ( a ) : pass
            ("x = 'ä'".encode(), b"x = 'a'", 3 / 6),  # two bytes that are no word characters
            (b"a", b"+", 0.0),
        ],
    )
    def test_words_and_single_other_characters_count_once(self, one: bytes, other: bytes, expected: float) -> None:
        assert similarity(one, other) == similarity(other, one) == expected

    def test_of_several_namesakes_the_most_similar_is_named(self) -> None:
        blobs = Blobs()
        blobs.after = "class A:\n    @x.setter\n    def x(self, v): self.v = v + 1\n"
        before = "class A:\n    @property\n    def x(self): return 1\n    @x.setter\n    def x(self, v): self.v = v\n"
        view = ParentView("c" * 40, "a.py", blobs.store.file(before), lambda span: None)
        (item,) = classify(blobs.store.file(blobs.after), [view], None, blobs.compare)
        assert item.earlier == Earlier(Novelty.MODIFIED, "a.py", "A.x", 12 / 14, "c" * 40)
