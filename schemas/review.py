"""What a human reviewer says of rows of a release: closed reasons, one row for each mark."""

from dataclasses import dataclass
from enum import StrEnum

SAMPLE_SIZE = 960  # rows that Galeras (ICSME 2023) validated by hand


class ReviewReason(StrEnum):
    """Why a row is not valid; after the checklist of Galeras' manual validation (ICSME 2023, its README)."""

    WRONG_DATE = "wrong_date"
    NOT_NEW = "not_new"
    WRONG_METADATA = "wrong_metadata"
    WRONG_FEATURE = "wrong_feature"
    WRONG_CUT = "wrong_cut"
    ANSWER_IN_PROMPT = "answer_in_prompt"
    MEANINGLESS_TEXT = "meaningless_text"
    TRIVIAL_CODE = "trivial_code"
    NEAR_DUPLICATE = "near_duplicate"
    LICENCE = "licence"
    PERSONAL_DATA = "personal_data"
    OTHER = "other"


REVIEW_REASONS = {
    ReviewReason.WRONG_DATE: "the method is older than its dates say",
    ReviewReason.NOT_NEW: "the commit did not bring this method: it moved, or was changed only",
    ReviewReason.WRONG_METADATA: "repository, path, name, commit or permalink is wrong",
    ReviewReason.WRONG_FEATURE: "a counted feature is wrong",
    ReviewReason.WRONG_CUT: "what is given and what is asked for are cut at the wrong place",
    ReviewReason.ANSWER_IN_PROMPT: "what is given holds the answer",
    ReviewReason.MEANINGLESS_TEXT: "the docstring or commit message does not say what the code does",
    ReviewReason.TRIVIAL_CODE: "the code has nothing to complete or to explain",
    ReviewReason.NEAR_DUPLICATE: "another row is nearly the same",
    ReviewReason.LICENCE: "the licence is wrong or does not let the code be used",
    ReviewReason.PERSONAL_DATA: "the row holds a secret or data about a person",
    ReviewReason.OTHER: "something else; the note says what",
}


@dataclass(frozen=True, slots=True)
class ReviewMark:
    """One reviewer's mark of one row of a testbed."""

    reviewer: str
    """Name the reviewer gave."""
    testbed: str
    """Testbed whose row was looked at."""
    row_id: str
    """The row."""
    valid: bool
    """The row is what the release says of it."""
    reason: ReviewReason | None
    """Why it is not valid; null for valid rows."""
    note: str
    """What the reviewer wrote; may be empty."""
