"""Types of columns that Python's own types do not tell exactly."""


class Sha256(bytes):
    """A SHA-256 digest: 32 bytes."""


class TokenIds(bytes):
    """Ids of tokens of the duplicate search's tokenizer: unsigned numbers of two bytes each, the low byte first."""
