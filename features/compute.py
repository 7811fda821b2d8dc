"""The features step: methods in, data points out, with a reason for every method that does not become one."""

from collections.abc import Iterable
from dataclasses import fields
from operator import attrgetter
from typing import Any

from features.ast_counts import count_nodes
from features.complexity import measure
from features.docstrings import docstring_of, signature_of
from features.language import identify_language
from features.licences import require_allowed
from features.parsing import ParsedCode, accepted_by_cpython, parse_method
from features.text import count_words
from miners.marks import generated_name, vendored_folder
from schemas.config import FeaturesConfig, LicencesConfig, MiningConfig
from schemas.errors import DataError
from schemas.records import DataPoint, Exclusion, Kept, Method, Novelty

STAGE = "features"
_DEFAULT_LICENCES = LicencesConfig()

# Columns that a data point takes over from its method as they are.
_CARRIED = tuple(
    item.name for item in fields(DataPoint) if item.name in frozenset(other.name for other in fields(Method))
)
_carried_values = attrgetter(*_CARRIED)


def compute_features(
    methods: Iterable[Method],
    config: FeaturesConfig,
    mining: MiningConfig | None = None,
    licences: LicencesConfig = _DEFAULT_LICENCES,
) -> Kept[DataPoint]:
    """Return a data point for every method that goes on, in input order, and an Exclusion for every other.

    Reasons: `novelty_<class>` (detail: where the earlier definition is; of `vendored` and `generated` the path, and
    what in it matched when `mining`, with which the methods were mined, is given), `license_not_allowed` and
    `license_unknown` (detail: the licence, or what was found of it), `code_too_long`, `code_not_utf8`, `no_definition`.
    Everything is computed on `method.code` parsed alone.
    """
    rows: list[DataPoint] = []
    excluded: list[Exclusion] = []
    for method in methods:
        try:
            _require_wanted(method, config, mining)
            require_allowed(method, licences)
            rows.append(_data_point(method, _readable(method, config)))
        except DataError as error:
            excluded.append(Exclusion(method.row_id, STAGE, error.reason, error.detail))
    return Kept(rows, excluded)


def _require_wanted(method: Method, config: FeaturesConfig, mining: MiningConfig | None) -> None:
    """Raise DataError with the evidence for a method's novelty class unless that class goes on."""
    if method.novelty in config.novelty:
        return
    if method.novelty is Novelty.ADDED and Novelty.COPIED_OLD in config.novelty:
        return  # what of the class `added` is `copied_old` shows only when it is compared with old code (dedup)
    where = (method.earlier_path, method.earlier_fun_name, method.earlier_commit_id)
    detail = " ".join(part for part in where if part)
    if method.similarity is not None:
        detail += f" similarity={method.similarity}"
    if method.novelty in (Novelty.VENDORED, Novelty.GENERATED):
        rule = None if mining is None else _rule(method, mining)
        detail = method.path if rule is None else f"{method.path} ({rule})"
    raise DataError(f"novelty_{method.novelty}", detail)


def _rule(method: Method, mining: MiningConfig) -> str | None:
    """Return what in a marked method's path matched; of a generated file that has another name, what is left."""
    if method.novelty is Novelty.VENDORED:
        folder = vendored_folder(method.path, mining.vendored_paths)
        return None if folder is None else f"folder {folder}"
    pattern = generated_name(method.path, mining.generated_names)
    return "mark in the head or line lengths" if pattern is None else f"file name {pattern}"


def _readable(method: Method, config: FeaturesConfig) -> ParsedCode:
    """Return the parsed code of a method; raise DataError with the reason why it has none."""
    size = len(method.code.encode("utf-8", "surrogatepass"))
    if size > config.max_code_bytes:
        raise DataError("code_too_long", f"{size} bytes, at most {config.max_code_bytes}")
    return parse_method(method.code)


def _data_point(method: Method, parsed: ParsedCode) -> DataPoint:
    """Return the data point of a method."""
    carried: dict[str, Any] = dict(zip(_CARRIED, _carried_values(method), strict=True))
    return DataPoint(**carried, **_features(parsed, method.code))


def features_of(code: str) -> dict[str, Any]:
    """Return the columns of a data point that follow from its code alone; DataError as `parse_method`."""
    return _features(parse_method(code), code)


def _features(parsed: ParsedCode, code: str) -> dict[str, Any]:
    counts, landmarks = count_nodes(parsed.tree)
    metrics = measure(parsed, landmarks)
    words = count_words(code)
    docstring = docstring_of(parsed)
    doc_words = count_words(docstring or "")
    doc_language = None if docstring is None else identify_language(docstring)
    return {
        "docstring": docstring,
        "doc_language": None if doc_language is None else doc_language.code,
        "doc_language_confidence": None if doc_language is None else doc_language.confidence,
        "doc_n_words": doc_words.n_words,
        "doc_vocab_size": doc_words.vocab_size,
        "doc_n_whitespaces": doc_words.n_whitespaces,
        "signature": signature_of(parsed),
        "n_ast_errors": counts.n_ast_errors,
        "n_ast_missing": counts.n_ast_missing,
        "n_ast_levels": counts.n_ast_levels,
        "n_ast_nodes": counts.n_ast_nodes,
        "n_identifiers": counts.n_identifiers,
        "n_words": words.n_words,
        "vocab_size": words.vocab_size,
        "n_whitespaces": words.n_whitespaces,
        "token_count": metrics.token_count,
        "parses": accepted_by_cpython(code),
        "nloc": metrics.nloc,
        "complexity": metrics.complexity,
    }
