"""The outcomes that samples/README.md promises, as data: one entry per id and thing to look at."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from schemas.records import Novelty


@dataclass(frozen=True, slots=True)
class MethodCase:
    """Rows of a method in the miner's output, in order."""

    id: str
    repo: str
    path: str
    fun_name: str
    novelty: tuple[Novelty, ...] = (Novelty.ADDED,)
    earlier: tuple[str, str] | None = None
    """Path and qualified name that the last row gives as evidence."""
    columns: Mapping[str, object] = field(default_factory=dict)
    """Columns of the last row."""


@dataclass(frozen=True, slots=True)
class ExcludedCase:
    """A commit (or, with a path, a file of it) that the miner leaves out."""

    id: str
    repo: str
    subject: str
    """First words of the commit's message."""
    reason: str
    path: str | None = None


@dataclass(frozen=True, slots=True)
class SilentCase:
    """A commit of which the miner says nothing, or whose files give no rows."""

    id: str
    repo: str
    subject: str
    candidate: bool
    """The commit is in the window and recorded."""


@dataclass(frozen=True, slots=True)
class PointCase:
    """Columns of a data point."""

    id: str
    repo: str
    fun_name: str
    columns: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class TestbedCase:
    """What a testbed makes of a method: kept (None) or excluded with a reason."""

    __test__ = False

    id: str
    repo: str
    fun_name: str
    testbed: str
    reason: str | None


A, MOVED, RENAMED, RESTORED = Novelty.ADDED, Novelty.MOVED, Novelty.RENAMED, Novelty.RESTORED
MODIFIED, REFORMATTED = Novelty.MODIFIED, Novelty.REFORMATTED

METHODS = (
    MethodCase("first_moment", "almanac", "almanac/easter.py", "easter"),
    MethodCase("clock_backwards", "conveyor", "conveyor/dependencies.py", "start_order"),
    MethodCase("old_date_on_new_commit", "conveyor", "conveyor/journal.py", "Journal.replay"),
    MethodCase("root_in_window", "planar", "plotter/svg.py", "element", columns={"parent_id": None}),
    MethodCase("evil_merge_new", "conveyor", "conveyor/job.py", "State.may_become"),
    MethodCase(
        "evil_merge_resolved",
        "conveyor",
        "conveyor/job.py",
        "Job.finished",
        (MODIFIED, MODIFIED, MODIFIED),
        ("conveyor/job.py", "Job.finished"),
    ),
    MethodCase(
        "revert",
        "measures",
        "measures/historical.py",
        "old_unit_factor",
        (RESTORED,),
        ("measures/historical.py", "old_unit_factor"),
    ),
    MethodCase(
        "moved_across_files",
        "measures",
        "measures/parsing.py",
        "split_quantity",
        (MOVED,),
        ("measures/convert.py", "split_quantity"),
    ),
    MethodCase(
        "moved_within_file",
        "measures",
        "measures/units.py",
        "Described.describe",
        (MOVED,),
        ("measures/units.py", "Unit.describe"),
    ),
    MethodCase("reordered", "measures", "measures/convert.py", "convert", ()),
    MethodCase("moved_and_modified", "measures", "measures/prefixes.py", "nearest_prefix"),
    MethodCase(
        "renamed_method",
        "measures",
        "measures/units.py",
        "Unit.in_base_units",
        (RENAMED,),
        ("measures/units.py", "Unit.to_base"),
    ),
    MethodCase(
        "reformatted",
        "measures",
        "measures/report.py",
        "summarise_series",
        (REFORMATTED,),
        ("measures/report.py", "summarise_series"),
    ),
    MethodCase(
        "quotes_changed",
        "measures",
        "measures/convert.py",
        "clamp_digits",
        (MODIFIED,),
        ("measures/convert.py", "clamp_digits"),
    ),
    MethodCase(
        "modified",
        "measures",
        "measures/scales.py",
        "celsius_from_fahrenheit",
        (MODIFIED,),
        ("measures/scales.py", "celsius_from_fahrenheit"),
    ),
    MethodCase("file_renamed", "measures", "measures/printing.py", "summarise_series", ()),
    MethodCase("file_renamed", "measures", "measures/printing.py", "choose_prefix", ()),
    MethodCase(
        "file_renamed_edited",
        "measures",
        "measures/temperature.py",
        "kelvin_from_celsius",
        (MODIFIED,),
        ("measures/scales.py", "kelvin_from_celsius"),
    ),
    MethodCase("file_renamed_edited", "measures", "measures/temperature.py", "celsius_from_fahrenheit", ()),
    MethodCase("file_renamed_edited", "measures", "measures/temperature.py", "wind_chill"),
    MethodCase("old_method_copied", "almanac", "almanac/quarters.py", "split_by_quarters"),
    MethodCase("vendored", "gridtext", "gridtext/_vendor/colornames/lookup.py", "nearest_name", (Novelty.VENDORED,)),
    MethodCase("generated_header", "gridtext", "gridtext/width_table.py", "is_wide", (Novelty.GENERATED,)),
    MethodCase("generated_name", "gridtext", "gridtext/wire/render_pb2.py", "_build_descriptor", (Novelty.GENERATED,)),
    MethodCase("huge_line", "quirks", "scripts/wide.py", "digit_sum", (Novelty.GENERATED,)),
    MethodCase("test_functions", "gridtext", "tests/test_table.py", "WidthTest.setUp", columns={"is_test": True}),
    MethodCase("test_functions", "gridtext", "tests/test_table.py", "sample_table", columns={"is_test": True}),
    MethodCase("test_functions", "gridtext", "gridtext/table.py", "Table.row", columns={"is_test": False}),
    MethodCase("overloads", "measures", "measures/quantity.py", "Quantity.__truediv__", (A, A, A)),
    MethodCase("property_setter", "measures", "measures/registry.py", "Registry.strict", (A, A)),
    MethodCase(
        "one_liner",
        "quirks",
        "quirks/definitions.py",
        "one_liner",
        columns={"code": "def one_liner(x): return x * x + 1"},
    ),
    MethodCase(
        "one_liner",
        "quirks",
        "quirks/definitions.py",
        "with_semicolons",
        columns={
            "code": 'def with_semicolons(x): "Two statements on one line, after a docstring of many words."; '
            "y = x + 1; return y"
        },
    ),
    MethodCase("one_liner", "gridtext", "gridtext/markup.py", "escape_markup"),
    MethodCase("conditional_definitions", "quirks", "quirks/definitions.py", "batched", (A, A)),
    MethodCase("conditional_definitions", "quirks", "quirks/definitions.py", "load_toml", (A, A)),
    MethodCase("conditional_definitions", "quirks", "quirks/definitions.py", "word_size"),
    MethodCase("nested_functions", "quirks", "quirks/definitions.py", "_traced"),
    MethodCase("nested_functions", "quirks", "quirks/definitions.py", "_traced.decorate", ()),
    MethodCase("nested_functions", "quirks", "quirks/definitions.py", "Wrapper.__call__", ()),
    MethodCase("crlf", "quirks", "quirks/crlf.py", "Normaliser.feed", columns={"start_line": 17, "end_line": 20}),
    MethodCase("cr_only", "quirks", "quirks/cr_only.py", "guess_ending", columns={"start_line": 4, "end_line": 10}),
    MethodCase("mixed_line_ends", "quirks", "quirks/mixed.py", "visible", columns={"start_line": 4, "end_line": 8}),
    MethodCase("no_final_newline", "quirks", "quirks/no_newline.py", "ends_properly"),
    MethodCase("byte_order_mark", "quirks", "quirks/bom.py", "detect_mark"),
    MethodCase("tabs_and_form_feed", "gridtext", "gridtext/draw.py", "Box.around"),
    MethodCase("tabs_and_form_feed", "gridtext", "gridtext/draw.py", "ProgressBar.advance", columns={"start_line": 61}),
    MethodCase("latin1_cookie", "quirks", "quirks/latin1_cookie.py", "sans_accents"),
    MethodCase("non_ascii_names", "quirks", "quirks/names.py", "größter_teiler"),
    MethodCase("non_ascii_names", "quirks", "quirks/names.py", "Ряд.скользящее_среднее"),
    MethodCase("non_ascii_names", "quirks", "quirks/names.py", "中央値"),
    MethodCase("file_name_bytes", "quirks", r"quirks/caf\xe9.py", "menu", columns={"file_name": r"caf\xe9.py"}),
    MethodCase("licence_texts", "measures", "measures/registry.py", "Registry.path", columns={"license": "MIT"}),
    MethodCase("licence_texts", "gridtext", "gridtext/report.py", "roman", columns={"license": "BSD-3-Clause"}),
    MethodCase("licence_metadata", "conveyor", "conveyor/retry.py", "retrying", columns={"license": "Apache-2.0"}),
    MethodCase("licence_changes", "planar", "planar/polygon.py", "convex_hull", columns={"license": "MIT"}),
    MethodCase("licence_changes", "planar", "planar/graph.py", "Graph.connect", columns={"license": "MPL-2.0"}),
    MethodCase(
        "licence_header", "planar", "planar/transform.py", "Affine.inverse", columns={"license": "BSD-2-Clause"}
    ),
    MethodCase(
        "licence_folder",
        "gridtext",
        "gridtext/colours/hues.py",
        "hue_steps",
        columns={
            "license": "0BSD",
            "license_matches": ("gridtext/colours/LICENSE: 0BSD", "LICENSE.txt: BSD-3-Clause"),
        },
    ),
    MethodCase(
        "licence_not_allowed",
        "gridtext",
        "gridtext/hyphenate.py",
        "break_points",
        columns={
            "license": "GPL-2.0-or-later",
            "license_matches": ("header: GPL-2.0-or-later", "LICENSE.txt: BSD-3-Clause"),
        },
    ),
    MethodCase("licence_missing", "almanac", "almanac/ical.py", "fold", columns={"license": None}),
    MethodCase("licence_missing", "planar", "plotter/svg.py", "path_data", columns={"license": None}),
)

EXCLUDED = (
    ExcludedCase("rebased", "conveyor", "Wait exponentially longer", "author_date_outside"),
    ExcludedCase("committer_clock_behind", "conveyor", "Let delays be drawn", "committer_date_outside"),
    ExcludedCase("far_future", "conveyor", "Add a token bucket", "date_in_future"),
    ExcludedCase("unreadable_date", "quirks", "Sort sections by name", "date_invalid"),
    ExcludedCase("latin1_plain", "quirks", "Read files in the encodings", "undecodable", "quirks/latin1_plain.py"),
    ExcludedCase("unknown_cookie", "quirks", "Read files in the encodings", "undecodable", "quirks/unknown_cookie.py"),
    ExcludedCase("nul_byte", "quirks", "Read files in the encodings", "binary", "quirks/nul.py"),
    ExcludedCase("symlink", "quirks", "Link the shared settings", "symlink", "quirks/shared.py"),
    ExcludedCase("submodule", "quirks", "Link the shared settings", "submodule", "chat.py"),
    ExcludedCase("lfs_pointer", "quirks", "Link the shared settings", "lfs_pointer", "quirks/model.py"),
    ExcludedCase("notebook", "quirks", "Add a notebook", "notebook", "docs/tour.ipynb"),
    ExcludedCase("type_stub", "quirks", "Add a notebook", "type_stub", "quirks/compare.pyi"),
    ExcludedCase("cython", "quirks", "Add a notebook", "cython", "quirks/scan.pyx"),
)

SILENT = (
    SilentCase("before_cutoff", "almanac", "Start almanac", candidate=False),
    SilentCase("before_cutoff", "conveyor", "Start conveyor", candidate=False),
    SilentCase("before_cutoff", "foyer", "Start foyer", candidate=False),
    SilentCase("before_cutoff", "gridtext", "Start gridtext", candidate=False),
    SilentCase("before_cutoff", "measures", "Start measures", candidate=False),
    SilentCase("before_cutoff", "planar", "Start planar", candidate=False),
    SilentCase("before_cutoff", "quirks", "Start quirks", candidate=False),
    SilentCase("new_year_elsewhere", "almanac", "Wish a happy new year", candidate=False),
    SilentCase("old_date_on_new_commit", "conveyor", "Tell which jobs can never start", candidate=False),
    SilentCase("plain_merge", "conveyor", "Merge branch 'metrics'", candidate=True),
    SilentCase("octopus_merge", "conveyor", "Merge branches 'topic-retry'", candidate=True),
    SilentCase("unrelated_merge", "planar", "Merge the history of the plotter", candidate=True),
    SilentCase("empty_commit", "almanac", "Trigger the build", candidate=True),
)

POINTS = (
    PointCase("type_parameters", "planar", "closest", {"n_ast_errors": 0, "n_ast_missing": 0}),
    PointCase("type_parameters", "planar", "QuadTree.insert", {"n_ast_errors": 0, "parses": True}),
    PointCase("python2", "quirks", "report", {"parses": False}),
    PointCase("python2", "quirks", "still_fine", {"parses": True, "n_ast_errors": 0}),
    PointCase("unterminated", "quirks", "unfinished", {"parses": False}),
    PointCase("unterminated", "quirks", "complete", {"parses": True, "n_ast_errors": 0, "n_ast_missing": 0}),
    PointCase("languages", "gridtext", "Box.around", {"doc_language": "ru"}),
    PointCase("languages", "gridtext", "draw_tree", {"doc_language": "de"}),
    PointCase("languages", "gridtext", "ProgressBar.advance", {"doc_language": "es"}),
    PointCase("languages", "gridtext", "Table.widths", {"doc_language": "en"}),
    PointCase("languages", "quirks", "sans_accents", {"doc_language": "fr"}),
    PointCase(
        "decorated",
        "quirks",
        "decorated",
        {
            "signature": "def decorated(\n"
            '    first: dict[str, Callable[[int], str]] = {"a:b": lambda n: f"{n:>{8}}"},  # noqa: B006\n'
            "    *,\n"
            '    second: Annotated[int, "bytes: not bits"] = 1,\n'
            ') -> "dict[str, int]":',
            "parses": True,
        },
    ),
    PointCase("latin1_cookie", "quirks", "sans_accents", {"signature": "def sans_accents(clé: str) -> str:"}),
    PointCase("non_ascii_names", "quirks", "中央値", {"parses": True, "docstring": None, "complexity": 2}),
    PointCase("tabs_and_form_feed", "gridtext", "ProgressBar.advance", {"parses": True, "nloc": 3}),
    PointCase("crlf", "quirks", "Normaliser.feed", {"parses": True}),
    PointCase(
        "cr_only",
        "quirks",
        "guess_ending",
        {"parses": True, "docstring": "Name the line end that a text uses most often."},
    ),
)

GENERATION = ("random_cut", "with_docstring", "from_docstring", "commit_gen", "summarization_gen")
NEED_DOCSTRING = ("raw_data_docstring", "with_docstring", "from_docstring", "summarization_gen")
TRIVIAL = (
    ("gridtext", "Device.begin"),
    ("gridtext", "Device.clear"),
    ("gridtext", "Device.bell"),
    ("gridtext", "Device.write"),
    ("gridtext", "Sink.emit"),
    ("quirks", "Outer.later"),
    ("quirks", "Outer.stub"),
    ("quirks", "Outer.refuse"),
    ("quirks", "Outer.nothing"),
)
IN_TESTBEDS = (
    *(TestbedCase("test_functions", "gridtext", "sample_table", name, "is_test") for name in GENERATION),
    *(TestbedCase("python2", "quirks", "report", name, "python2_syntax") for name in ("random_cut", "commit_gen")),
    *(TestbedCase("trivial_bodies", repo, name, "random_cut", "trivial_body") for repo, name in TRIVIAL),
    *(TestbedCase("trivial_bodies", repo, name, "commit_gen", "trivial_body") for repo, name in TRIVIAL),
    *(TestbedCase("trivial_bodies", repo, name, "raw_data", None) for repo, name in TRIVIAL),
    *(TestbedCase("unterminated", "quirks", "unfinished", name, "syntax_errors") for name in GENERATION),
    *(TestbedCase("unterminated", "quirks", "complete", name, None) for name in GENERATION),
    *(
        TestbedCase("short_docstring", "gridtext", "Outline.underline", n, "docstring_too_short")
        for n in NEED_DOCSTRING
    ),
    TestbedCase("short_docstring", "gridtext", "Outline.underline", "random_cut", None),
    TestbedCase("message_bot", "conveyor", "exit_code_for", "commit_gen", "message_bot"),
    TestbedCase("message_version_bump", "conveyor", "version_text", "commit_gen", "message_version_bump"),
    TestbedCase("message_issue_only", "conveyor", "unique_name", "commit_gen", "message_issue_only"),
    TestbedCase("message_automatic", "conveyor", "fair_shares", "commit_gen", "message_automatic"),
    TestbedCase("message_merge", "conveyor", "State.may_become", "commit_gen", "message_merge"),
    TestbedCase("message_too_short", "conveyor", "parse_field", "commit_gen", "message_too_short"),
    TestbedCase("squash_merge", "conveyor", "minute_of", "commit_gen", None),
    TestbedCase("latin1_message", "quirks", "pluriel", "commit_gen", None),
    TestbedCase("below_threshold", "planar", "average", "raw_data", None),
    TestbedCase("below_threshold", "almanac", "average", "raw_data", None),
    *(TestbedCase("type_parameters", "planar", "closest", name, None) for name in GENERATION),
    *(TestbedCase("one_liner", "quirks", "with_semicolons", name, None) for name in GENERATION),
)

# Outcome of the testbed real_code for every new function of foyer that is no test: `task` or the reason.
REAL_CODE: Mapping[str, Mapping[str, str]] = {
    "proven": dict.fromkeys(
        (
            "ticket_number", "say_number", "Roll.from_label", "Roll.rolls_needed", "row_name", "SeatPlan.best_block",
            "SeatPlan.take", "price_of", "WaitingList.serve", "WaitingList.note", "longest_wait",
        ),
        "task",
    ),
    "proven_awkward_ids": {"check_digit": "task", "read_number": "task", "split_seat": "task"},
    "proven_generator": {"Roll.tear": "task", "SeatPlan.free_seats": "task", "SeatPlan.hold": "task"},
    "proven_coroutine": {"WaitingList.ask": "task"},
    "proven_property": {"Roll.left": "task"},
    "proven_init": {"Roll.__init__": "task", "SeatPlan.__init__": "task"},
    "proven_in_set_up": {"WaitingList.join": "task"},
    "proven_overloaded": {"SeatPlan.state": "task"},
    "proven_beside_flaky": {"badge": "task"},
    "asserts_nothing": {"family_rebate": "mock_survived", "SeatPlan.draw": "mock_survived"},
    "asserts_the_default": {"is_preview": "mock_survived"},
    "swallows_failure": {"bill": "mock_survived"},
    "flaky_by_order": {"cloakroom_number": "only_flaky_tests"},
    "flaky_by_hash_seed": {"first_called": "only_flaky_tests"},
    "skipped_without_variable": {"print_receipt": "not_covered"},
    "without_test": {"export_sales": "not_covered"},
    "run_at_import": {"radio_words": "runs_at_import"},
    "changed_later": {"money": "not_at_head"},
}  # fmt: skip
