"""Worker processes for CPU-heavy work: one forkserver pool per run that survives the death of a worker."""

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Generic, ParamSpec, Protocol, TypeVar

import pyarrow as pa

from miners.collection import without_collection
from schemas.errors import PipelineError, TransientError

P = ParamSpec("P")
Out = TypeVar("Out")
Item = TypeVar("Item")


class Packed(Generic[Item]):
    """What one worker made for another: the run's process in between passes on bytes and makes no objects of them."""

    def __init__(self, item: Item) -> None:
        self._bytes = pickle.dumps(item, pickle.HIGHEST_PROTOCOL)

    @without_collection
    def open(self) -> Item:
        """Return the value, made anew."""
        item: Item = pickle.loads(self._bytes)  # noqa: S301 - it came the same way as all that workers return
        return item

    def take(self) -> Item:
        """Return the value and let its bytes go: for the worker that it was sent to, where nobody needs them again."""
        item, self._bytes = self.open(), b""
        return item


class Pool(Protocol):
    """Computes functions elsewhere, for several threads at a time; arguments and results are pickled."""

    workers: int
    """Functions that are computed at a time."""
    shares: int
    """Shares that one large computation is cut into: 1 where the threads of one process reach all cores, since each
    share holds everything that it computes from."""

    def run(self, function: Callable[P, Out], *args: P.args, **kwargs: P.kwargs) -> Out:
        """Return function(*args); TransientError when whoever computed it is gone (retry helps)."""
        ...

    def close(self) -> None:
        """Stop at once; everything that was finished is on disk."""
        ...


class WorkerPool:
    """Runs functions in worker processes of this machine; thread-safe."""

    shares = 1

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._lock = threading.Lock()
        self._executor: ProcessPoolExecutor | None = None
        self._closed = False

    def run(self, function: Callable[P, Out], *args: P.args, **kwargs: P.kwargs) -> Out:
        """Return function(*args) computed in a worker; TransientError when the worker died (retry helps)."""
        executor = self._current()
        try:
            return executor.submit(function, *args, **kwargs).result()
        except (BrokenProcessPool, RuntimeError) as error:
            if isinstance(error, RuntimeError) and not isinstance(error, BrokenProcessPool) and not self._closed:
                raise
            self._discard(executor)
            if self._closed:
                raise PipelineError("the run was stopped") from None
            raise TransientError(
                "a worker process died; if it happens again, memory may be short: use fewer --workers"
            ) from None

    def close(self) -> None:
        """Stop all workers at once; everything they had finished is on disk."""
        with self._lock:
            self._closed = True
            executor, self._executor = self._executor, None
        for child in multiprocessing.active_children():
            child.kill()
        if executor is not None:
            # The workers are dead, so this only waits until the executor has noticed.
            executor.shutdown(wait=True, cancel_futures=True)

    def _current(self) -> ProcessPoolExecutor:
        with self._lock:
            if self._closed:
                raise PipelineError("the run was stopped")
            if self._executor is None:
                context = multiprocessing.get_context("forkserver")
                context.set_forkserver_preload(["flows.memory", "flows.work", "flows.dedup_work"])
                self._executor = ProcessPoolExecutor(self.workers, mp_context=context, initializer=_start_worker)
            return self._executor

    def _discard(self, broken: ProcessPoolExecutor) -> None:
        with self._lock:
            if self._executor is broken:
                self._executor = None
        broken.shutdown(wait=False, cancel_futures=True)


def _start_worker() -> None:
    """Leave Ctrl-C to the run's process, and end when that is gone (kill -9 reaches only one process)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Arrow's own pool asks the kernel for fresh pages where malloc has used ones: docs/adr/0006.
    pa.set_memory_pool(pa.system_memory_pool())
    threading.Thread(target=_end_with_run, daemon=True).start()


def _end_with_run() -> None:
    """End this worker with the run; its parent by process id is the fork server, which lives as long as a worker."""
    run = multiprocessing.parent_process()
    if run is not None:
        run.join()  # returns when the other end of a pipe is closed, as the kernel does for a dead process
        os._exit(1)
