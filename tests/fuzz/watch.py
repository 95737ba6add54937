"""Children that try damaged inputs, replaced when one dies or hangs."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.fuzz.target import find

ROOT = Path(__file__).parents[2]
PER_CHILD = 400  # what engines and drivers keep of each model adds up

Case = tuple[str, int | str]  # a target, and a seed or a file


class Child:
    """A process and what it answers."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.child"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.tried = 0

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")  # it has ended

    def run(self, case: Case) -> dict[str, Any]:
        """What became of the input, a hang and the death of the child included."""
        assert self._process.stdin is not None
        limit_s = find(case[0]).limit_s
        told = {"target": case[0], "case": case[1]}
        self.tried += 1
        try:
            self._process.stdin.write(f"{json.dumps(case)}\n")
            self._process.stdin.flush()
            line = self._lines.get(timeout=limit_s)
        except queue.Empty:
            return told | {"outcome": "hung", "problem": f"took more than {limit_s:.0f} s"}
        except OSError:
            line = ""
        if not line:
            code = self._process.wait()
            return told | {"outcome": "died", "problem": f"the process ended with {code}"}
        return dict(json.loads(line))

    @property
    def usable(self) -> bool:
        return self.tried < PER_CHILD and self._process.poll() is None

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


def trials(cases: Iterable[Case], children: int = 2) -> Iterator[dict[str, Any]]:
    """What became of each case, as it is known."""
    waiting: queue.SimpleQueue[Case] = queue.SimpleQueue()
    for case in cases:
        waiting.put(case)
    total, results = waiting.qsize(), queue.SimpleQueue[dict[str, Any]]()
    stop = threading.Event()

    def work() -> None:
        child = Child()
        try:
            while not stop.is_set():
                result = child.run(waiting.get_nowait())
                results.put(result)
                if result["problem"] or not child.usable:
                    child.close()
                    child = Child()
        except queue.Empty:
            pass
        finally:
            child.close()

    workers = [threading.Thread(target=work) for _ in range(children)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(total):
            yield results.get()
    finally:
        stop.set()
        for worker in workers:
            worker.join()
