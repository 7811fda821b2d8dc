"""Workers on other machines: the same functions as `flows.pool.WorkerPool`'s, computed by a Dask cluster.

What a stage computes for a repository, a range of commits or a partition is one function over tables of the workspace;
its result is a file under a name that its contents decide. So a function may be computed twice, as Dask does when a
worker dies: the second time writes the same bytes. docs/adr/0013 says why the functions go to Dask and not the Prefect
tasks around them.
"""

import secrets
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from schemas.errors import ConfigError, PipelineError, TransientError

P = ParamSpec("P")
Out = TypeVar("Out")

_ANSWER_SECONDS = 30  # a scheduler on another continent answers in less


class DaskPool:
    """Runs functions on the workers of a Dask scheduler; thread-safe."""

    def __init__(self, address: str, workspace: Path, code: str) -> None:
        """Connect and see whether all workers run this version of Postquem and have this workspace.

        Raises ConfigError when no scheduler answers, it has no workers, or some worker would compute something else.
        """
        self._client = _connect(address)
        self._lock = threading.Lock()
        self._closed = False
        try:
            self.workers = self.shares = self._check_workers(address, workspace, code)
        except BaseException:  # nobody else would close the connection
            self._client.close()
            raise

    def run(self, function: Callable[P, Out], *args: P.args, **kwargs: P.kwargs) -> Out:
        """Return function(*args) computed by some worker, by another one when that dies.

        TransientError when the workers that got it died one after the other.
        """
        from distributed import CancelledError
        from distributed.comm.core import CommClosedError
        from distributed.scheduler import KilledWorker

        if self._closed:
            raise PipelineError("the run was stopped")
        # Bound, so that none of our arguments is taken for one of Dask's; nothing is pure that writes a file.
        future = self._client.submit(partial(function, *args, **kwargs), pure=False)
        try:
            result: Out = future.result()
        except (CancelledError, CommClosedError):
            raise PipelineError("the run was stopped, or the Dask scheduler is gone") from None
        except KilledWorker as error:
            raise TransientError(
                f"Dask workers died over {function.__name__}: {error}; if it happens again, memory may be short"
            ) from None
        return result

    def close(self) -> None:
        """Leave the cluster; what it is computing for this run is given up."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._client.close()

    def _check_workers(self, address: str, workspace: Path, code: str) -> int:
        """Return the number of functions that the cluster computes at a time."""
        threads: dict[str, int] = self._client.nthreads()
        if not threads:
            raise ConfigError(f"the Dask scheduler at {address} has no workers; start some with `dask worker`")
        probe = workspace / f".dask-{secrets.token_hex(8)}"
        probe.write_text("")
        try:
            seen: dict[str, Any] = self._client.run(_look, str(probe), on_error="return")
        finally:
            probe.unlink()
        for worker, answer in sorted(seen.items()):
            if isinstance(answer, BaseException):
                raise ConfigError(f"Dask worker {worker} cannot import Postquem ({answer}); install it there too")
            version, has_workspace = answer
            if version != code:
                raise ConfigError(f"Dask worker {worker} runs Postquem {version}, this is {code}; install the same")
            if not has_workspace:
                raise ConfigError(
                    f"Dask worker {worker} does not see {workspace}; all machines need the workspace under one path"
                )
        return sum(threads.values())


def _connect(address: str) -> Any:  # noqa: ANN401 - distributed has no types
    try:
        from distributed import Client
    except ImportError:
        raise ConfigError("--dask needs Dask: `.venv/bin/python -m pip install 'distributed>=2025.1'`") from None
    try:
        return Client(  # type: ignore[no-untyped-call] # as distributed leaves it
            address, timeout=_ANSWER_SECONDS, set_as_default=False, name="postquem"
        )
    except (OSError, ValueError) as error:
        raise ConfigError(f"no Dask scheduler answers at {address}: {error}") from None


def _look(probe: str) -> tuple[str, bool]:
    """Return, on a worker, its version of Postquem and whether it sees a file of the workspace."""
    from flows.versions import code_version

    return code_version(), Path(probe).is_file()
