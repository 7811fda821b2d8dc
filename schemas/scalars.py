"""Types of columns that Python's own types do not tell exactly."""


class Sha256(bytes):
    """A SHA-256 digest: 32 bytes."""


class TokenId(int):
    """Id of a token of the duplicate search's tokenizer: at most 65,535."""
