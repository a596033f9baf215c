"""Processes of this machine that work for a job, and end with it, however it ends.

Each of them waits beside its work for the end of a pipe that the job's process alone holds: where that process is gone,
killed too, nobody goes on to write. Processes are spawned, not forked: a RocksDB that was opened before a fork does not
work behind it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Final, TypeVar

from pykstreams.core.errors import BootstrapError, ConfigError

T = TypeVar("T")

_GIVEN_UP: Final = 1


class Pool:
    """Some processes, or this one: with 1 there is no other. A context manager; an error ends calls that still run."""

    def __init__(self, processes: int) -> None:
        self._pool: ProcessPoolExecutor | None = None
        if processes > 1:
            context = get_context("spawn")
            self._theirs, self._ours = context.Pipe(duplex=False)
            self._pool = ProcessPoolExecutor(
                processes, mp_context=context, initializer=_end_with_job, initargs=(self._theirs,)
            )

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        if self._pool is None:
            return
        if kind is not None:
            self._ours.close()
        self._pool.shutdown(cancel_futures=True)
        self._ours.close()
        self._theirs.close()

    def run(self, calls: Sequence[tuple[Callable[..., T], tuple[object, ...]]], done: Callable[[int], None]) -> list[T]:
        """Makes all calls; the first one that fails ends the rest."""
        done(0)
        if self._pool is None:
            results = []
            for function, arguments in calls:
                results.append(function(*arguments))
                done(len(results))
            return results
        futures: list[Future[T]] = [self._pool.submit(function, *arguments) for function, arguments in calls]
        try:
            for at, future in enumerate(as_completed(futures), 1):
                future.result()
                done(at)
        except BrokenProcessPool as error:
            raise BootstrapError(
                "a process of the job died. Either it wrote why to stderr, before this, or it was killed, most likely "
                "for want of memory (then use fewer processes). Nothing is published"
            ) from error
        except (AttributeError, TypeError) as error:
            if "pickle" not in str(error):
                raise
            raise ConfigError(
                f"the job cannot be handed to other processes: {error}. Name the application and functions as "
                "module:attribute instead of handing them in, or use processes=1"
            ) from error
        return [future.result() for future in futures]


def _end_with_job(job: Connection) -> None:
    threading.Thread(target=_wait_for_end, args=(job,), name="waits-for-the-job", daemon=True).start()


def _wait_for_end(job: Connection) -> None:
    try:
        job.recv_bytes()
    except EOFError:
        os._exit(_GIVEN_UP)
