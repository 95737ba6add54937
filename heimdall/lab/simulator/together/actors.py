"""What was learnt for TOP, from ONNX files that onnxruntime runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from heimdall.errors import ConfigError
from heimdall.lab.policies.top import Task
from heimdall.lab.simulator.together.concurrent_stages import (
    Combined,
    ConcurrentStage,
    Ending,
    Left,
)
from heimdall.lab.simulator.together.cut_sequences import CUTS, best_of
from heimdall.lab.simulator.together.features import graph_of
from heimdall.system import paths

ACTORS = paths.ASSETS / "models" / "top"
KEY = "heimdall_top"  # of a file's metadata: what it was trained for, as JSON
AGAIN = "train one for it: heimdall train-top SCENARIO"
CHOICE = ("features", "parents", "leaves", "figures")  # what a cutter is given (see ``features``)


@dataclass(frozen=True)
class About:
    """What a file says it was trained for, and how."""

    networks: tuple[str, ...]
    blocks: tuple[int, ...]
    device: str
    most_blocks: int
    samples: int
    threshold: float
    stages: str  # the file that cuts combined blocks, beside this one
    seed: int
    steps: int
    settings: Mapping[str, Any]


class OnnxActor:
    """A trained launcher and scheduler. ``hash``: of the file."""

    def __init__(self, path: Path) -> None:
        self.path, self.hash = path, file_hash(path)
        self._session = open_session(path)
        self.about = _about(path, self._session)
        about = self.about
        self.task = Task(
            about.networks, about.blocks, about.most_blocks, about.samples, about.threshold
        )
        (self._input,) = [each.name for each in self._session.get_inputs()]

    def check(self, networks: tuple[str, ...], blocks: tuple[int, ...], device: str) -> None:
        """Raise ConfigError where it was trained for other networks, or another device."""
        about = self.about
        if (networks, blocks) != (about.networks, about.blocks) or device != about.device:
            raise ConfigError(
                f"actor {self.path} was trained for {', '.join(about.networks)} on "
                f"{about.device!r}, not for {', '.join(networks)} on {device!r}: {AGAIN}"
            )

    def named(self, models: tuple[str, ...]) -> OnnxActor:
        """This actor, for models of these names."""
        self.task = replace(self.task, models=models)
        return self

    def __call__(self, state: Sequence[float]) -> Sequence[float]:
        """Numbers from 0 to 1 for a state (see ``schedulers.top.Actor``)."""
        given = np.asarray([state], np.float32)
        (numbers,) = self._session.run(None, {self._input: given})
        return [float(number) for number in numbers[0]]


class OnnxStager:
    """A trained GPG: cuts a combined block into stages (Algorithm 2). Raises ConfigError for a file
    that is damaged, or for something else."""

    def __init__(self, path: Path) -> None:
        self.path, self.hash = path, file_hash(path)
        self._session = open_session(path)
        if [each.name for each in self._session.get_inputs()] != list(CHOICE):
            raise ConfigError(f"{path} does not choose among endings of blocks: {AGAIN}")

    def cut(self, combined: Combined, cuts: int = CUTS) -> tuple[list[ConcurrentStage], float]:
        """(Stages of a combined block, what they take in ns), the best of so many cuts."""
        graph = graph_of(combined)

        def likely(left: Left, endings: list[Ending]) -> np.ndarray:
            given = graph.features, graph.parents, *graph.choices(left, endings)
            (found,) = self._session.run(None, dict(zip(CHOICE, given, strict=True)))
            return np.asarray(found[:, 0], np.float64)

        return best_of(combined, likely, cuts)


def actor_path(actor: str) -> Path:
    """A bundled actor by its name, or a file. Raises ConfigError for an unknown name."""
    if Path(actor).suffix == ".onnx":
        return Path(actor)
    path = ACTORS / f"{actor}.onnx"
    if not path.is_file():
        found = sorted(each.stem for each in ACTORS.glob("*.onnx"))
        raise ConfigError(f"no actor is called {actor!r} (there are: {', '.join(found)}): {AGAIN}")
    return path


def bundled(sha256: str) -> Path:
    """The bundled actor with that hash. Raises ConfigError where there is none."""
    for path in sorted(ACTORS.glob("*.onnx")):
        if file_hash(path) == sha256:
            return path
    raise ConfigError(f"no bundled actor has the sha256 {sha256}: name its file (--actor FILE)")


def file_hash(path: Path) -> str:
    """SHA-256 of a file. Raises ConfigError where it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ConfigError(f"actor {path} cannot be read: {error}; {AGAIN}") from error


def open_session(path: Path) -> onnxruntime.InferenceSession:
    """The file in onnxruntime, on one core. Raises ConfigError for what is no network."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(
            path.read_bytes(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime's own kinds
        raise ConfigError(f"actor {path} is damaged, or no ONNX file: {AGAIN}") from error


def _about(path: Path, session: onnxruntime.InferenceSession) -> About:
    said = session.get_modelmeta().custom_metadata_map.get(KEY)
    try:
        if said is None:
            raise ValueError(f"it lacks {KEY!r} in its metadata")
        fields = json.loads(said)
        tuples = {key: tuple(fields[key]) for key in ("networks", "blocks")}
        return About(**{**fields, **tuples})
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"actor {path} does not say what it is for: {error}; {AGAIN}") from error
