"""The error tree.

    PipelineError
    ├── ConfigError      the user has to change something: stop at once, exit code 2
    │   └── SourceError  a source names no repository, or none that we may read
    │       └── RefusedError a host that has a repository does not give it to us
    ├── DataError        a row, file, commit or repository is unusable: it becomes an Exclusion
    └── TransientError   network or another passing fault: retried, then the job ends incomplete
        ├── SandboxError the sandbox itself failed: says nothing about the code that was to run in it
        └── UnreachableError a source of a repository failed at every one of several tries

Every message says what happened and what to do about it.
"""


class PipelineError(Exception):
    """Anything Postquem raises on purpose."""


class ConfigError(PipelineError):
    """The configuration, workspace or command line must be changed by the user."""


class SourceError(ConfigError):
    """The location of a source is no repository, has not got the branch, or may not be read."""


class RefusedError(SourceError):
    """A host that has a repository refuses it to us, for another reason than too many requests."""


class DataError(PipelineError):
    """An input cannot be used; `reason` is the exclusion's reason, the message its detail."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail

    def __reduce__(self) -> tuple[type["DataError"], tuple[str, str]]:
        """Keep both arguments when the error crosses a process boundary."""
        return (type(self), (self.reason, self.detail))


class TransientError(PipelineError):
    """A passing fault (network, remote server): worth a retry."""


class UnreachableError(TransientError):
    """A repository's source did not answer, at every one of several tries."""


class SandboxError(TransientError):
    """A sandbox could not run a command; no verdict on the command."""
