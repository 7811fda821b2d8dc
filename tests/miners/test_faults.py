import pytest

from miners.faults import reading_clone
from schemas.errors import ConfigError, DataError, PipelineError, RefusedError, SourceError, UnreachableError

GONE, SILENT = SourceError("https://host/a/b does not exist"), UnreachableError("https://host/a/b: timed out")
REFUSED = RefusedError("https://host/a/b is refused")


@pytest.mark.parametrize(
    ("error", "reason"), [(GONE, "source_missing"), (REFUSED, "repository_refused"), (SILENT, "repository_unreachable")]
)
def test_a_fault_of_the_source_is_the_repositorys_own(error: PipelineError, reason: str) -> None:
    with pytest.raises(DataError) as caught, reading_clone():
        raise error
    assert (caught.value.reason, caught.value.detail, caught.value.__cause__) == (reason, str(error), error)


@pytest.mark.parametrize("error", [GONE, REFUSED, SILENT])
def test_a_source_that_must_not_be_missing_keeps_its_error(error: PipelineError) -> None:
    with pytest.raises(type(error)) as caught, reading_clone(optional=False):
        raise error
    assert caught.value is error


@pytest.mark.parametrize("error", [ConfigError("git is missing"), PipelineError("no space left"), DataError("x")])
def test_other_errors_pass(error: PipelineError) -> None:
    with pytest.raises(type(error)) as caught, reading_clone():
        raise error
    assert caught.value is error
