"""Simulations side by side: in processes of this machine, or on a cluster (Dask)."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from heimdall.errors import ArgumentError, DeviceError, HeimdallError
from heimdall.system.extras import line

MOST_WORKERS = 1024
CLUSTER = "dask://"
_CLUSTER_S = 10.0  # to answer
_AHEAD = 4  # calls that are handed out for each worker

Result = TypeVar("Result")
Workers = int | str | None


def parse_workers(text: str) -> int | str:
    """``"4"`` to 4; ``"dask://HOST:PORT"`` stays as it is. Raises ArgumentError otherwise."""
    if re.fullmatch(re.escape(CLUSTER) + r"[^\s/:]+:[0-9]{1,5}", text):
        return text
    if text.isdecimal() and 1 <= int(text) <= MOST_WORKERS:
        return int(text)
    raise ArgumentError(
        f"must be from 1 to {MOST_WORKERS} processes, or the scheduler of a cluster: "
        f"{CLUSTER}HOST:PORT",
        argument="workers",
        value=text,
    )


def usual_workers() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def results(
    function: Callable[..., Result], calls: Sequence[tuple[Any, ...]], workers: Workers = None
) -> Generator[tuple[int, Result], None, None]:
    """(which call, what it returned) for every call of a function, as they end.

    ``workers``: so many processes (None: one a core; 1: this process), or a cluster's address; the
    function and its arguments go there pickled. Closing the iterator ends what still runs.
    Raises what a call raised, DeviceError for a cluster that is not there, and HeimdallError where
    a process died.
    """
    count = usual_workers() if workers is None else workers
    if isinstance(count, int) and min(count, len(calls)) <= 1:
        for index, call in enumerate(calls):
            yield index, function(*call)
        return
    opened = _cluster(count) if isinstance(count, str) else _processes(min(count, len(calls)))
    with opened as (executor, width):
        waiting = iter(enumerate(calls))
        running: dict[Future[Result], int] = {}
        while True:
            # Few at a time: the calls of a large sweep need not all be pickled at once.
            for index, call in islice(waiting, _AHEAD * width - len(running)):
                running[executor.submit(function, *call)] = index
            if not running:
                return
            done = next(as_completed(running))
            index = running.pop(done)
            try:
                yield index, done.result()
            except BrokenProcessPool as error:
                raise HeimdallError(
                    "a process that simulated has died; is there enough memory for so many "
                    "(--workers)?"
                ) from error


@contextmanager
def _processes(count: int) -> Iterator[tuple[Executor, int]]:
    """Fresh ones: a fork of a process with threads (OpenCV's, a progress bar's) may hang."""
    context = multiprocessing.get_context("spawn")
    theirs, ours = context.Pipe(duplex=False)
    executor = ProcessPoolExecutor(count, context, initializer=_begin, initargs=(theirs,))
    finished = False
    try:
        yield executor, count
        finished = True
    finally:
        if not finished:
            ours.close()
        executor.shutdown(cancel_futures=True)
        ours.close()
        theirs.close()


def _begin(parent: Connection) -> None:
    """A worker leaves Ctrl-C to the process that began it, and ends with that one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        parent.poll(None)  # nothing is ever sent: the other end was closed
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _cluster(address: str) -> Iterator[tuple[Executor, int]]:
    try:
        from distributed import Client
    except ImportError as error:
        raise DeviceError(
            f"{address}: a cluster needs Dask, which is not installed: "
            f"{line('cluster')} (on its workers too)"
        ) from error
    try:
        client = Client(address.replace(CLUSTER, "tcp://"), timeout=_CLUSTER_S)
    except (OSError, TimeoutError) as error:
        raise DeviceError(f"{address}: no Dask scheduler answers there: {error}") from error
    with client, client.get_executor() as executor:
        threads = sum(client.nthreads().values())
        if not threads:
            raise DeviceError(f"{address}: the cluster has no workers: start one (dask worker)")
        yield executor, threads
