"""Results that are kept as soon as they are there, so that nothing is run twice.

A task says all that decides its result (``about``); the sources that it ran with are noted beside
it. A result of other sources is run again, unless one only wants to see what there is.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from heimdall.analyzer.profiler import Progress
from heimdall.errors import ConfigError
from heimdall.lab.bench.apart import FailedSystemError
from heimdall.system import paths
from heimdall.system.paths import replace_file


@dataclass(frozen=True)
class Task:
    """``call(*arguments)`` gives the result, in another process where there are several: all of it
    can be pickled. ``about``: everything but the sources that decides the result."""

    call: Callable[..., Any]
    arguments: tuple[Any, ...]
    about: Mapping[str, Any]

    @cached_property
    def key(self) -> str:
        text = json.dumps(self.about, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:20]


class Kept:
    """The results in a file of one JSON object a line. A later line counts; one that was cut off
    by an interruption does not."""

    def __init__(self, path: Path, source: str) -> None:
        self._path, self._source = path, source
        self._lines: dict[str, dict[str, Any]] = {}
        for line in self._read():
            self._lines[line["key"]] = line

    def _read(self) -> list[dict[str, Any]]:
        if not self._path.exists():
            return []
        found = []
        try:
            for text in self._path.read_text(encoding="utf-8").splitlines():
                try:
                    line = json.loads(text)
                except ValueError:
                    continue
                if isinstance(line, dict) and {"key", "source", "result"} <= line.keys():
                    found.append(line)
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"results {self._path} cannot be read: {error}") from error
        return found

    def get(self, task: Task, *, any_source: bool = False) -> Any:
        """The task's result; None when it has not run (with these sources), or has failed."""
        line = self._lines.get(task.key)
        if line is None or not (any_source or line["source"] == self._source):
            return None
        return line["result"]

    def failure(self, task: Task) -> str | None:
        """Why it has no result, where it was tried."""
        line = self._lines.get(task.key)
        return None if line is None else line.get("failure")

    def put(self, task: Task, result: Any, failure: str | None = None) -> None:
        """Keep it: on disk when this returns."""
        line = {"key": task.key, "source": self._source, "about": task.about, "result": result}
        line |= {} if failure is None else {"failure": failure}
        self._lines[task.key] = line
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{self._begin()}{json.dumps(line, default=str)}\n")

    def _begin(self) -> str:
        """Ends a line that an interruption has cut off."""
        if not self._path.exists() or not self._path.stat().st_size:
            return ""
        with self._path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return "" if file.read() == b"\n" else "\n"

    def tidy(self) -> None:
        """Leave out the lines that later ones replace."""
        lines = [json.dumps(line, default=str) for line in self._lines.values()]
        replace_file(self._path, "".join(f"{line}\n" for line in lines).encode())

    def others(self, tasks: Sequence[Task]) -> int:
        """How many of the tasks have a result of other sources only."""
        known = [line for task in tasks if (line := self._lines.get(task.key))]
        return sum(line["source"] != self._source for line in known)


def perform(tasks: Sequence[Task], kept: Kept, workers: int, what: str, progress: Progress) -> None:
    """Run what is not kept yet, in ``workers`` processes (0: in this one), and keep it."""
    tasks = list({task.key: task for task in tasks}.values())
    todo = [task for task in tasks if kept.get(task) is None]
    done = len(tasks) - len(todo)
    progress(what, done, len(tasks))
    if not todo:
        return
    if not workers:
        for task in todo:
            try:
                kept.put(task, task.call(*task.arguments))
            except FailedSystemError as error:  # the others go on; the page says why
                kept.put(task, None, str(error))
            done += 1
            progress(what, done, len(tasks))
        return
    # "spawn": the progress bar is a thread of this process, which a fork would not survive
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for task, result in _finished(pool, todo):
            kept.put(task, result)
            done += 1
            progress(what, done, len(tasks))


def _finished(pool: Executor, tasks: Sequence[Task]) -> Any:
    """(task, result) as they end. An error, or an interruption, drops what has not begun."""
    futures = {pool.submit(task.call, *task.arguments): task for task in tasks}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        for future in futures:
            future.cancel()


def fingerprint(*patterns: str) -> str:
    """A short hash of the files that match, relative to the root of the sources. Raises ConfigError
    for a pattern that matches nothing: what it stood for has moved."""
    digest = hashlib.sha256()
    for pattern in patterns:
        found = sorted(paths.ROOT.glob(pattern))
        if not found:
            raise ConfigError(f"no source matches {pattern!r}")
        for path in found:
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
