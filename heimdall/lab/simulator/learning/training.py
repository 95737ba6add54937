"""``heimdall train-top``: learns for a scenario, and writes what was learnt as ONNX files.

OUT/stages-DEVICE.onnx    cuts combined blocks of the scenario's networks on the device (GPG)
OUT/SCENARIO.onnx         launcher and schedulers (MADDPG), which names the other
OUT/SCENARIO.png          how both learnt
OUT/SCENARIO.pt           to go on from where it was ended
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from heimdall.errors import ConfigError
from heimdall.lab.bench.scenario import Scenario
from heimdall.lab.bench.systems import parse_system
from heimdall.lab.simulator.learning import agents, gpg, maddpg
from heimdall.lab.simulator.learning.nets import pytorch
from heimdall.lab.simulator.serving import prepare_requests
from heimdall.lab.simulator.together.actors import KEY, About, OnnxStager, file_hash
from heimdall.lab.simulator.together.device import TogetherDevice
from heimdall.lab.simulator.together.networks import network
from heimdall.lab.simulator.together.policies import Stager, block_of, task_of
from heimdall.system.paths import replace_file

SAMPLES, THRESHOLD = 3, 100.0
STEPS, STAGE_STEPS = 2000, 1200

Progress = Callable[[str, int, int], None]


def train_top(
    scenario: Scenario,
    out: Path,
    *,
    device: str | None = None,
    steps: int = STEPS,
    stage_steps: int = STAGE_STEPS,
    seed: int = 0,
    stages: Path | None = None,
    search: bool = True,
    resume: Path | None = None,
    progress: Progress = lambda *_: None,
) -> dict[str, Any]:
    """Train for a scenario's models on a device; what was written, and how well it does.

    ``stages``: a file that cuts combined blocks, instead of learning that too; ``search``: actors
    begin with a plan that is searched for, instead of all blocks on their own; ``resume``: what an
    earlier training with the same arguments has left. Raises ConfigError without PyTorch, for a
    device that runs one operator at a time, and for a file that is not of such a training.
    """
    pytorch()
    experiment = prepare_requests(scenario, device, parse_system("top"))
    found, references = experiment.device, experiment.references
    if not isinstance(found, TogetherDevice):
        raise ConfigError(
            f"device {found.name!r} runs one operator at a time: there is nothing to learn"
        )
    what = {
        "scenario": scenario.name,
        "device": found.name,
        "steps": steps,
        "stage_steps": stage_steps,
        "seed": seed,
        "search": search,
    }
    kept = _Checkpoint(out / f"{scenario.name}.pt", what, resume)
    curves: dict[str, list[tuple[int, float]]] = {}
    if stages is None:
        stages = out / f"stages-{found.name}.onnx"
        blocks = [
            block_of(found, name, index)
            for name in dict.fromkeys(references.values())
            for index in range(len(network(name).blocks))
        ]
        cutter = gpg.GpgTraining(blocks, found.most_blocks, seed, stage_steps, found.groups)
        kept.go_on("stages", cutter)
        for _ in cutter.train():
            progress("stages", cutter.done, stage_steps)
            if cutter.done % 50 == 0:
                kept.keep("stages", cutter)
        curves["time of a combined block, beside one op after the other"] = cutter.curve
        said = {**what, "networks": sorted(set(references.values()))}
        _write(stages, cutter.learnt.onnx({KEY: json.dumps(said)}))
    task = replace(task_of(found, references), samples=SAMPLES, threshold=THRESHOLD)
    stager = OnnxStager(stages)
    quick = Stager(found, references, lambda combined: stager.cut(combined, 1))
    learner = maddpg.MaddpgTraining(
        experiment,
        task,
        Stager(found, references, stager.cut),
        seed,
        steps,
        quick,
        search=search,
    )
    kept.go_on("actors", learner)
    for _ in learner.train():
        progress("actors", min(learner.done, steps), steps)
        kept.keep("actors", learner)
    curves["reward of the launcher (Eq. 2)"] = learner.curve
    curves["share of requests that finish, of all + of the worst model"] = learner.tests
    about = About(
        networks=tuple(references.values()),
        blocks=task.blocks,
        device=found.name,
        most_blocks=task.most_blocks,
        samples=task.samples,
        threshold=task.threshold,
        stages=stages.name,
        seed=seed,
        steps=steps,
        settings={"gamma": maddpg.GAMMA, "rate": maddpg.RATE, "batch": maddpg.BATCH,
                  "weights": maddpg.WEIGHTS, "hidden": agents.HIDDEN, "critic": agents.CRITIC,
                  "replay": maddpg.REPLAY, "episode_s": maddpg.EPISODE_S, "search": search},
    )  # fmt: skip
    actor = out / f"{scenario.name}.onnx"
    _write(actor, learner.agents.onnx(task.state_size, {KEY: json.dumps(asdict(about))}))
    picture = out / f"{scenario.name}.png"
    plot(curves, picture)
    return {
        **what,
        "actor": str(actor),
        "actor_sha256": file_hash(actor),
        "stages": str(stages),
        "stages_sha256": file_hash(stages),
        "curves": str(picture),
        "score": round(learner.best, 4),
    }


class _Checkpoint:
    """What a training has learnt so far, in a file."""

    def __init__(self, path: Path, what: Mapping[str, Any], resume: Path | None) -> None:
        self._path, self._kept = path, {"what": dict(what)}
        if resume is not None:
            self._kept = _read(resume)
            if self._kept["what"] != dict(what):
                raise ConfigError(
                    f"training {resume} is of {self._kept['what']}, not of {dict(what)}: resume it "
                    "with the same arguments"
                )

    def go_on(self, part: str, training: Any) -> None:
        """Let a part of the training go on from where it was, if it had begun."""
        if part in self._kept:
            training.resume(self._kept[part])

    def keep(self, part: str, training: Any) -> None:
        """Keep where a part of the training is."""
        self._kept[part] = training.state()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        beside = self._path.with_suffix(".pt.new")
        pytorch().save(self._kept, beside)
        beside.replace(self._path)


def _read(path: Path) -> dict[str, Any]:
    """A file that a training has left; nothing in it is run."""
    try:
        kept = pytorch().load(path, weights_only=True)
    except Exception as error:  # torch raises whatever its parts raise
        raise ConfigError(f"training {path} cannot be read: {error}") from error
    if not isinstance(kept, dict) or "what" not in kept:
        raise ConfigError(f"{path} is no training that could go on")
    return kept


def _write(path: Path, content: bytes) -> None:
    try:
        replace_file(path, content)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error}") from error


def plot(curves: Mapping[str, list[tuple[int, float]]], path: Path) -> None:
    """The curves, one above the other, as a picture."""
    from matplotlib.figure import Figure  # not pyplot: no display, no global state

    figure = Figure(figsize=(7, 2.2 * len(curves)), layout="constrained")
    for number, (title, points) in enumerate(curves.items(), 1):
        axes = figure.add_subplot(len(curves), 1, number)
        axes.plot(*zip(*points, strict=True)) if points else None
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("step", fontsize=8)
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
