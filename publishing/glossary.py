"""What the stages count and what the reasons mean: the card's text for every line of the funnel."""

from schemas.records import Novelty

_TESTBED = "testbed_"
_ANY_TESTBED = "testbed_*"

_UNKNOWN = "unexplained"

STAGES = {
    "discovery": "a repository that the search on GitHub finds, or found earlier",
    "sources": "a repository that the configuration names or the search finds",
    "commits": "a commit of the walked branch with its author date or its committer date in the window, or with "
    "a date that cannot be read or lies in the future",
    "files": "a Python file (`*.py`), notebook, type stub or Cython file that such a commit adds or changes, of a "
    "merge only those that no parent has",
    "methods": "a method of such a file that does not stand in a parent's version of it byte for byte, of any novelty "
    "class",
    "index": "a version of a file in the tree of a parent that is no row of `commits`, read to find what is `moved` or "
    "`renamed`; one that cannot be read can let old code pass as `added`",
    "history": "a commit outside the window, searched for definitions that come back in it (`restored`)",
    "features": "a method; it goes on as a data point when its novelty class is wanted and its licence allowed",
    "cutoff": "a Python file of the tree at the cutoff, equal files once; one that cannot be read can let a copy of "
    "old code pass as `added`",
    "dedup_old": "a data point, compared with the methods of the tree at the cutoff",
    "opt_out": "a data point that `dedup_old` let through; the ledgers of opt-outs remove some",
    "references": "a row of a reference set, of the wanted language",
    "dedup_references": "a data point that `dedup_old` let through, compared with the reference sets",
    "dedup_exact": "a data point that the stages before let through, those of all repositories together",
    "dedup_near": "a data point that equals no earlier one",
    "real_code": "a data point that `dedup_near` let through, to be proven by execution",
    _ANY_TESTBED: "a data point that `dedup_near` let through, looked at for the testbed of that name",
}

# `copied_old` shows only at `dedup_old`, where a reason of that name tells it.
_NOVELTY = {
    Novelty.ADDED: "no definition of this name in the file before, and its tokens nowhere in the parent's tree",
    Novelty.MOVED: "its tokens stood elsewhere in the parent's tree; the detail names where",
    Novelty.RENAMED: "its tokens but for its own name stood in the parent's tree; the detail names where",
    Novelty.MODIFIED: "the name was in the file before, with other tokens",
    Novelty.REFORMATTED: "the name was in the file before, with the same tokens",
    Novelty.VENDORED: "a folder's name marks the code as another project's",
    Novelty.GENERATED: "the file's name, head or line lengths mark it as written by a program",
    Novelty.RESTORED: "a commit that it descends from had brought its tokens; the detail names which and where",
    Novelty.REPEATED: "an earlier commit of another branch brings the same code under the same name, as a cherry-pick "
    "does; the detail names it",
}

# By the stages that give them, in the order of the stages; a reason of several groups stands in the first.
REASONS_BY_STAGE: dict[tuple[str, ...], dict[str, str]] = {
    ("discovery",): {
        "clone_url_refused": "GitHub gives an address to clone from that is no `https` one of its own host",
        "repository_blocked": "its host has blocked the repository, for legal reasons for example",
        "repository_deleted": "GitHub knows it no longer",
        "repository_disabled": "its host has disabled the repository",
        "repository_private": "the repository is not public",
        "repository_refused": "its host does not give the repository out; the detail has its words",
        "search_left": "an earlier search found it, and it does not match any more",
    },
    ("sources",): {
        "branch_missing": "HEAD is damaged or names a branch that does not exist, and none is configured",
        "clone_too_large": "more of it would have to be kept than `clones.max_megabytes`",
        "commit_missing": "the repository has not got a commit of which answers are to be scored",
        "git_failed": "git could not read the repository; the detail has its words",
        "history_broken": "the branch's newest commit cannot be read",
        "repository_empty": "the repository has no commit",
        "repository_repeated": "the same repository as another source, by its numeric id, an alias or its newest "
        "commit; the detail names the one that is mined",
        "repository_shallow": "a shallow clone whose history ends inside the window, so that its oldest commits would "
        "look as if they had brought everything",
        "repository_unreachable": "its host did not give it out at any of several tries; the next run tries again",
        "repository_without_python": "no Python file at the head or in the window",
        "source_missing": "an optional source that does not exist or is no repository",
    },
    ("commits", "history"): {
        "author_date_outside": "committed inside the window, authored outside",
        "committer_date_outside": "authored inside the window, committed outside",
        "commit_failed": "the miner failed on it in a way nobody foresaw; the detail names the error",
        "commit_unreadable": "git cannot read the commit, or a tree or file that is needed to show what it changes",
        "date_in_future": "dated later than the run",
        "date_invalid": "a date that cannot be read",
        "too_many_files": "changes more Python files than the configured limit",
    },
    ("files", "index", "cutoff"): {
        "binary": "holds a NUL byte",
        "blob_missing": "the repository lacks the file's contents",
        "cutoff_unknown": "the history cannot be read as far back as the cutoff, so that nothing is compared with the "
        "tree there",
        "comment_run_too_long": "a run of thousands of comment lines, which the parser takes too long for",
        "cython": "a Cython file (`.pyx`, `.pxd`, `.pxi`): another language",
        "file_too_large": "larger than the configured limit",
        "file_unparsable": "the parser gave up on it",
        "lfs_pointer": "the contents are in Git LFS",
        "notebook": "a Jupyter notebook (`.ipynb`): its cells are no Python file",
        "object_corrupt": "git cannot read an object",
        "object_id_invalid": "an object's id is malformed",
        "object_missing": "the repository lacks an object",
        "old_version_unreadable": "the parent's version cannot be read, so that nothing can be said about novelty",
        "submodule": "a submodule, no file",
        "symlink": "a symbolic link",
        "type_stub": "a type stub (`.pyi`): declarations without bodies",
        "undecodable": "not in the encoding that it declares, UTF-8 without a declaration",
    },
    ("methods",): {
        "dedent_failed": "does not keep its meaning with its indentation removed",
        "earlier_version_broken": "a syntax error in the file's earlier version may hide an earlier definition",
        "row_id_repeated": "its commit's tree holds the path more than once, and the first file has this definition at "
        "the same place",
        "scope_unknown": "a syntax error hides the class it belongs to",
    },
    ("features",): {
        **{f"novelty_{name}": text for name, text in _NOVELTY.items()},
        "code_not_utf8": "the code has no UTF-8 form",
        "code_too_long": "longer than the configured limit",
        "license_not_allowed": "the licence that the detail names is not in the configured list or forbids some use",
        "license_unknown": "no known licence, and the configuration asks for one; the detail has what was found",
        "no_definition": "the code is not one function definition on its own",
    },
    ("dedup_old",): {
        "copied_old": "similar to a method of the tree at the cutoff, which the detail names as `old=` with the "
        "similarity as `jaccard=`",
    },
    ("opt_out",): {
        "opt_out_unknown": "its commit cannot be read, so that nobody can say whether somebody who opted out wrote it",
        "opted_out": "somebody asked to leave it out: the owner of the repository or an author, for example",
    },
    ("references",): {
        "reference_line_invalid": "a line that is no JSON object",
        "reference_not_text": "no text where the code should be",
    },
    ("dedup_references",): {
        "in_earlier_release": "similar to a row of an earlier release, which the detail names with the similarity",
        "in_reference": "similar to a row of a reference set, which the detail names with the similarity",
    },
    ("dedup_exact", "dedup_near"): {
        "exact_duplicate": "the same code, docstring apart, as the row that the detail names as `keeper=`, or as the "
        "one named as `via=`, which was itself removed for the keeper",
        "lone_surrogate": "the code holds half of a surrogate pair and has no UTF-8 form",
        "near_duplicate": "similar to the row that the detail names as `keeper=`, or linked to it by the row that it "
        "names as `via=`",
    },
    ("real_code",): {
        "all_tests_fail": "no test of the repository passes",
        "build_dep_unavailable_as_wheel": "what the project's build backend needs cannot be had as wheels",
        "collection_error": "pytest cannot collect the repository's tests; the detail has the end of the error",
        "dep_needs_source_build": "a package that the project needs is only there as source, which is not built",
        "dep_unresolvable_at_date": "what the project needs cannot be had together as of the commit's date",
        "dependency_missing": "a module that the tests import is not in the environment; the detail names it",
        "direct_url_dependency": "the project needs a package by a direct URL, which no index serves",
        "disk_full": "the repository's tests, or the packages that they need, take more disk than they may have",
        "execution_off": "the configuration lets nothing of the repository be executed",
        "metadata_hook_failed": "the project's build backend cannot tell its metadata; the detail has the log",
        "mock_infrastructure": "with a mock in place of the body the tests gave no answer: a report is missing, or a "
        "limit was hit",
        "mock_survived": "a mock in place of the body makes no stable test fail; the detail names the mock",
        "mock_timeout": "a mock in place of the body makes the tests hang",
        "needs_display": "the tests ask for a display",
        "needs_env_secret": "the tests ask for a key or another secret",
        "needs_network": "the tests reach out to a network, which they do not have",
        "needs_service": "the tests ask for a service that is not there",
        "no_interpreter": "no Python that was found fits the project",
        "no_sandbox": "no sandbox can be had on the machine that made the release",
        "no_tests": "pytest collects no test",
        "not_at_head": "the method does not stand in the executed tree as its commit brought it",
        "not_confirmed": "in a fresh process, with the mock on disk, the tests do not fail",
        "not_covered": "no test that passes enters the function",
        "only_flaky_tests": "every test that enters the function passes in some runs only, or measures time",
        "oom": "the repository's tests or its build need more memory than they may have",
        "pids": "the repository's tests start more processes than they may",
        "project_build_failed": "the project does not build; the detail has the end of the log",
        "runner_self_hosted": "pytest itself runs on the repository's modules, so that no report with a mock counts",
        "runs_at_import": "the function runs at import or collection, which a mock breaks",
        "suite_flaky": "no test that enters a function passes in every run without measuring time",
        "suite_too_slow": "one run of the repository's tests takes too long",
        "timeout": "building takes too long, or more than three tests of the repository hang or crash",
    },
    (_ANY_TESTBED,): {
        "answer_in_prompt": "what would be given holds the whole answer",
        "commit_cap": "the commit had its share of the testbed already",
        "diff_missing": "no diff of the file",
        "docstring_too_short": "a docstring of at most 3 words",
        "is_test": "the method belongs to tests, by its folder, file, class or own name",
        "message_automatic": "the commit message is a tool's or an editor's default",
        "message_bot": "the commit was made by a bot",
        "message_issue_only": "the commit message only names an issue",
        "message_merge": "the commit message is that of a merge",
        "message_revert": "the commit message is that of a revert",
        "message_too_short": "the commit message has at most 10 words and at most 50 characters of its own",
        "message_version_bump": "the commit message announces a version or a dependency's update",
        "no_cut_point": "the body has no token boundary to cut at",
        "no_docstring": "no docstring",
        "not_sampled": "the testbed was full",
        "python2_syntax": "Python 2",
        "repo_cap": "the repository had its share of the testbed already",
        "syntax_errors": "the syntax tree has errors",
        "too_short": "too little text for this testbed: at most 10 tokens and 100 characters of code (`random_cut`), "
        "or at most 10 words and 50 characters of docstring (`summarization_gen`)",
        "trivial_body": "a body without meaning: `pass`, `...`, a docstring only, `raise NotImplementedError`",
    },
}

REASONS = {name: text for reasons in REASONS_BY_STAGE.values() for name, text in reasons.items()}


def stage_name(stage: str) -> str:
    """Return the name under which `STAGES` has a stage: all testbeds have one."""
    return _ANY_TESTBED if stage.startswith(_TESTBED) else stage


def stage_meaning(stage: str) -> str:
    """Return what a row of a stage is; "unexplained" for an unknown stage."""
    return STAGES.get(stage_name(stage), _UNKNOWN)


def reason_meaning(reason: str) -> str:
    """Return what a reason means; "unexplained" for an unknown one: a missing line must not cost a release."""
    return REASONS.get(reason, _UNKNOWN)
