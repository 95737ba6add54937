"""The policies that run operators together, made for a scenario's models on a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from heimdall.errors import ConfigError
from heimdall.lab.policies.grouped import Member
from heimdall.lab.policies.static_plan import StaticPlan
from heimdall.lab.policies.top import Task, Top
from heimdall.lab.simulator.together.actors import OnnxActor, OnnxStager, actor_path, bundled
from heimdall.lab.simulator.together.concurrent_stages import (
    Block,
    Combined,
    ConcurrentStage,
    cut,
    most_saving,
)
from heimdall.lab.simulator.together.device import TogetherDevice, load_together
from heimdall.lab.simulator.together.networks import network
from heimdall.schedulers import Scheduler

References = Mapping[str, str]  # by model, its network


def block_of(device: TogetherDevice, reference: str, index: int | None = None) -> Block:
    """One block of a network, or all of it, on a device."""
    net = network(reference)
    start, end = (0, len(net.ops)) if index is None else net.blocks[index]
    return Block(net, start, end, device.times(reference))


def static_plan(device: TogetherDevice, references: References, *, waits: bool) -> StaticPlan:
    """One plan for a request of every model."""
    blocks = [block_of(device, reference) for reference in references.values()]
    whole = Combined(blocks, device.groups)
    stages, _ = cut(whole, most_saving)
    return StaticPlan(tuple(references), stages, waits=waits)


class Stager:
    """Cuts combined blocks into stages, each once."""

    def __init__(
        self,
        device: TogetherDevice,
        references: References,
        cuts: Callable[[Combined], tuple[list[ConcurrentStage], float]],
    ) -> None:
        self._cuts, self._known = cuts, dict[tuple[Member, ...], list[ConcurrentStage]]()
        self._groups = device.groups
        self._blocks = {
            (model, index): block_of(device, reference, index)
            for model, reference in references.items()
            for index in range(len(network(reference).blocks))
        }

    def __call__(self, members: tuple[Member, ...]) -> list[ConcurrentStage]:
        """The stages of a combined block, groups as (number of the member, ops of its network)."""
        if members not in self._known:
            blocks = [self._blocks[member] for member in members]
            self._known[members], _ = self._cuts(Combined(blocks, self._groups))
        return self._known[members]


def saving_stager(device: TogetherDevice, references: References) -> Stager:
    """One that takes the ending that saves most, step by step."""
    return Stager(device, references, lambda combined: cut(combined, most_saving))


def task_of(device: TogetherDevice, references: References) -> Task:
    """What there is to decide."""
    blocks = tuple(len(network(reference).blocks) for reference in references.values())
    return Task(tuple(references), blocks, device.most_blocks)


def top(device: TogetherDevice, references: References, actor: str | None) -> Top:
    """TOP with what was learnt for these models. Raises ConfigError where nothing was."""
    if actor is None:
        raise ConfigError(
            "system 'top' needs an actor, and the scenario names none: train one "
            "(heimdall train-top SCENARIO) and name it (actor = FILE)"
        )
    loaded = OnnxActor(actor_path(actor))
    loaded.check(tuple(references.values()), task_of(device, references).blocks, device.name)
    stager = OnnxStager(loaded.path.parent / loaded.about.stages)
    stages = Stager(device, references, stager.cut)
    made_of = {"stages": stager.hash, "device": device.name, "networks": dict(references)}
    return Top(loaded.named(tuple(references)), stages, made_of)


def made(name: str, device: TogetherDevice, references: References, actor: str | None) -> Scheduler:
    """The policy of a system that runs operators together."""
    if name == Top.name:
        return top(device, references, actor)
    return static_plan(device, references, waits=name == StaticPlan.name)


def remade(config: Mapping[str, Any], actor: Path | None = None) -> Scheduler | None:
    """The policy that a coordinator's configuration was recorded with, fresh, where it is one of
    these; ``actor``: the file that it had, unless that is a bundled one. Raises ConfigError where
    it cannot be had."""
    policy, name = config.get("policy"), config.get("scheduler")
    try:
        if policy is None:
            return None
        if name == StaticPlan.name:
            stages = [[(member, tuple(ops)) for member, ops in each] for each in policy["stages"]]
            return StaticPlan(policy["models"], stages, waits=policy["waits"])
        if name == Top.name:
            path = actor or bundled(policy["actor"])
            return top(load_together(policy["device"]), policy["networks"], str(path))
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"the recorded policy {name!r} is damaged: {error!r}") from error
    return None
