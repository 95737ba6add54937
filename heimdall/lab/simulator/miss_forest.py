"""How many deadlines tasks with fixed priorities will miss, by a random forest, as RT-mDL (SenSys
'21) predicts it.

The bundled one has learnt from simulated runs of tasks drawn at random, none of them an app's
(``scripts/miss_forest.py``), and is an ONNX file. It is told of tasks what is known beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime

from heimdall.errors import ConfigError
from heimdall.lab.simulator.schedulability import MOST, Task, responses
from heimdall.system import paths

FILE = paths.ASSETS / "models" / "rt-mdl" / "forest.onnx"
FEATURES = 10


def features(tasks: Sequence[Task]) -> list[float]:
    """Of tasks, those of the highest priority first: how many there are and what they ask for, and
    mean, maximum and late ones of their response times, blocked by those below or not."""
    found = [
        len(tasks),
        sum(each.takes_ns / each.period_ns for each in tasks),
        max(each.takes_ns / each.deadline_ns for each in tasks),
        min(MOST, sum(each.takes_ns for each in tasks) / max(each.deadline_ns for each in tasks)),
    ]
    for blocked in (False, True):
        took = responses(tasks, blocked=blocked)
        found += [sum(took) / len(took), max(took), sum(each > 1 for each in took) / len(took)]
    return found


class MissForest:
    """Predicts the share of deadlines that are missed. Raises ConfigError for a file that is
    missing or damaged."""

    def __init__(self, path: Path = FILE) -> None:
        try:
            self._session = onnxruntime.InferenceSession(
                path.read_bytes(), providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime's own kinds, too
            raise ConfigError(
                f"random forest {path} is missing or damaged; make it again: "
                f"python scripts/miss_forest.py"
            ) from error
        (self._input,) = [each.name for each in self._session.get_inputs()]

    def __call__(self, tasks: Sequence[Task]) -> float:
        """Of tasks, those of the highest priority first."""
        if not tasks:
            return 0.0
        given = np.asarray([features(tasks)], np.float32)
        (found,) = self._session.run(None, {self._input: given})
        return float(found[0, 0])
