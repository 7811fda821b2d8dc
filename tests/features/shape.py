"""What a golden example says about a data point."""

from dataclasses import dataclass

from schemas.records import DataPoint


@dataclass(frozen=True, slots=True)
class Expected:
    """Every computed column but the confidence, which belongs to the identifier's model."""

    docstring: str | None
    doc_language: str | None
    doc_words: tuple[int, int, int]
    """doc_n_words, doc_vocab_size, doc_n_whitespaces."""
    signature: str
    n_ast_nodes: int
    n_ast_levels: int
    n_ast_errors: int
    n_ast_missing: int
    n_identifiers: int
    words: tuple[int, int, int]
    """n_words, vocab_size, n_whitespaces."""
    token_count: int
    nloc: int
    complexity: int
    parses: bool


def observed(point: DataPoint) -> Expected:
    """Return the computed columns of a data point."""
    return Expected(
        docstring=point.docstring,
        doc_language=point.doc_language,
        doc_words=(point.doc_n_words, point.doc_vocab_size, point.doc_n_whitespaces),
        signature=point.signature,
        n_ast_nodes=point.n_ast_nodes,
        n_ast_levels=point.n_ast_levels,
        n_ast_errors=point.n_ast_errors,
        n_ast_missing=point.n_ast_missing,
        n_identifiers=point.n_identifiers,
        words=(point.n_words, point.vocab_size, point.n_whitespaces),
        token_count=point.token_count,
        nloc=point.nloc,
        complexity=point.complexity,
        parses=point.parses,
    )
