"""The features step: methods in, data points out, with a reason for every method that does not become one."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import islice
from operator import attrgetter
from typing import Any

from features.ast_counts import AstCounts
from features.complexity import Metrics
from features.docstrings import docstring_of, signature_of
from features.language import identify_language
from features.licences import require_allowed
from features.parsing import ParsedCode, accepted_by_cpython, parse_method
from features.syntax import measure_syntax
from features.text import TextCounts, count_words
from miners.marks import generated_name, vendored_folder
from schemas.config import FeaturesConfig, LicencesConfig, MiningConfig
from schemas.errors import DataError
from schemas.records import DataPoint, Exclusion, Kept, Method, Novelty

STAGE = "features"
_DEFAULT_LICENCES = LicencesConfig()
# Each kind of work is done on some methods before the next: taking turns on every one of them costs 7% more, because
# the parser's tables and the interpreter's data drive each other out of the processor's caches.
METHODS_AT_A_TIME = 16

# Columns that a data point takes over from its method as they are.
_CARRIED = tuple(
    item.name for item in fields(DataPoint) if item.name in frozenset(other.name for other in fields(Method))
)
_SYNTAX = ("signature", *AstCounts._fields, *Metrics._fields, *TextCounts._fields)
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
    waiting = iter(methods)
    while some := list(islice(waiting, METHODS_AT_A_TIME)):
        readable = []
        for method in some:
            try:
                _require_wanted(method, config, mining)
                require_allowed(method, licences)
                readable.append((method, _readable(method, config)))
            except DataError as error:
                excluded.append(Exclusion(method.row_id, STAGE, error.reason, error.detail))
        rows.extend(_data_points(readable))
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


def _data_points(methods: Sequence[tuple[Method, ParsedCode]]) -> Iterator[DataPoint]:
    """Yield the data point of each method."""
    columns = _features([method.code for method, _ in methods], [parsed for _, parsed in methods])
    for (method, _), own in zip(methods, columns, strict=True):
        carried: dict[str, Any] = dict(zip(_CARRIED, _carried_values(method), strict=True))
        yield DataPoint(**carried, **own)


def features_of(code: str) -> dict[str, Any]:
    """Return the columns of a data point that follow from its code alone; DataError as `parse_method`."""
    return _features([code], [parse_method(code)])[0]


def syntax_features(codes: Sequence[str], parsed: Sequence[ParsedCode]) -> list[dict[str, Any]]:
    """Return the columns of syntax and software metrics of methods."""
    counted = list(map(measure_syntax, parsed))
    signatures = list(map(signature_of, parsed))
    words = map(count_words, codes)
    return [
        dict(zip(_SYNTAX, (signature, *counts, *metrics, *text), strict=True))
        for signature, (counts, metrics), text in zip(signatures, counted, words, strict=True)
    ]


def _features(codes: Sequence[str], parsed: Sequence[ParsedCode]) -> list[dict[str, Any]]:
    syntax = syntax_features(codes, parsed)
    documentation = [_documentation(docstring_of(item)) for item in parsed]
    verdicts = map(accepted_by_cpython, codes)
    return [
        {**first, **second, "parses": verdict}
        for first, second, verdict in zip(syntax, documentation, verdicts, strict=True)
    ]


def _documentation(docstring: str | None) -> dict[str, Any]:
    """Return the columns that follow from a docstring."""
    words = count_words(docstring or "")
    language = None if docstring is None else identify_language(docstring)
    return {
        "docstring": docstring,
        "doc_language": None if language is None else language.code,
        "doc_language_confidence": None if language is None else language.confidence,
        "doc_n_words": words.n_words,
        "doc_vocab_size": words.vocab_size,
        "doc_n_whitespaces": words.n_whitespaces,
    }
