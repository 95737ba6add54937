"""Children that try damaged models, replaced when one dies or hangs."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIMIT_S = 60.0  # for one model; the first of a child also loads the engines
PER_CHILD = 400  # what engines and drivers keep of each model adds up


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

    def run(self, seed: int) -> dict[str, Any]:
        """What became of the model, a hang and the death of the child included."""
        assert self._process.stdin is not None
        self.tried += 1
        try:
            self._process.stdin.write(f"{seed}\n")
            self._process.stdin.flush()
            line = self._lines.get(timeout=LIMIT_S)
        except queue.Empty:
            return {"seed": seed, "outcome": "hung", "problem": f"took more than {LIMIT_S:.0f} s"}
        except OSError:
            line = ""
        if not line:
            code = self._process.wait()
            return {"seed": seed, "outcome": "died", "problem": f"the process ended with {code}"}
        return dict(json.loads(line))

    @property
    def usable(self) -> bool:
        return self.tried < PER_CHILD and self._process.poll() is None

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


def trials(seeds: Iterable[int], children: int = 2) -> Iterator[dict[str, Any]]:
    """What became of each seed's model, as it is known."""
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for seed in seeds:
        waiting.put(seed)
    total, results = waiting.qsize(), queue.SimpleQueue[dict[str, Any]]()
    stop = threading.Event()

    def work() -> None:
        child = Child()
        try:
            while not stop.is_set():
                result = child.run(waiting.get_nowait())
                results.put(result)
                if result["outcome"] == "hung" or result["problem"] or not child.usable:
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
