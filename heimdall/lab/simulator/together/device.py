"""GPUs that run operators at the same time: heimdall/lab/devices/NAME.toml with [together].

[processors.gpu]
name = "A100"
kind = "gpu"
lanes = 8             # command queues

[together]
peak_tflops = 19.5
bandwidth_gb_s = 1555
launch_us = 63.6
work_groups = 216     # resident at once
contention = 0.05     # by how much each group of a stage but one makes it longer
most_blocks = 4       # that pay in a combined block: H of TOP's paper

Its networks are those that are written down op by op (``networks``), and any that the file lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from statistics import fmean

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from heimdall.errors import ConfigError
from heimdall.lab.simulator.device import load_device
from heimdall.lab.simulator.phones import as_several, is_phone
from heimdall.lab.simulator.several import NetworkTable, SeveralDevice, recut, several_path
from heimdall.lab.simulator.tables import Table, as_tables, read_toml
from heimdall.lab.simulator.together.concurrent_stages import GROUPS
from heimdall.lab.simulator.together.gpu import ConcurrentGpu, OpTimes, Took, stage_took
from heimdall.lab.simulator.together.networks import ARCHITECTURES, network
from heimdall.vocabulary.enums import Silent
from heimdall.vocabulary.events import RunTogether
from heimdall.vocabulary.plans import StagePlan
from heimdall.vocabulary.processors import GPU, Processor

BLOCKS = "blocks"  # the partition that the architecture itself has


class TogetherTable(Table):
    """What a GPU can do that runs operators at the same time."""

    peak_tflops: PositiveFloat = Field(description="What it computes at most.")
    bandwidth_gb_s: PositiveFloat = Field(description="What its memory carries at most.")
    launch_us: NonNegativeFloat = Field(description="To launch one kernel.")
    work_groups: PositiveInt = Field(description="Resident at once.")
    contention: NonNegativeFloat = Field(
        description="By how much each group of a stage but one makes it longer."
    )
    most_blocks: PositiveInt = Field(
        default=4, description="How many blocks pay in a combined block at most."
    )


class TogetherDevice(SeveralDevice):
    """A device whose GPU runs several groups of operators at once."""

    together: TogetherTable = Field(description="What its GPU can do.")
    networks: Mapping[str, NetworkTable] = Field(
        default_factory=dict, description="Beside those that are written down op by op."
    )

    def alone(self) -> tuple[Processor, ...]:
        """Its GPU runs one network at a time for systems that do not group them."""
        return tuple(replace(each, lanes=1) for each in self.list())

    @property
    def groups(self) -> int:
        """How many groups of ops it runs at the same time at most."""
        return min(GROUPS, *(each.lanes for each in self.list() if each.id == GPU))

    @property
    def most_blocks(self) -> int:
        """How many blocks are combined at most: none, where there is one lane."""
        return min(self.together.most_blocks, self.groups)

    @cached_property
    def gpu(self) -> ConcurrentGpu:
        """How long operators take there."""
        table = self.together
        return ConcurrentGpu(
            table.peak_tflops * 1e12,
            table.bandwidth_gb_s * 1e9,
            table.launch_us * 1e3,
            table.work_groups,
            table.contention,
        )

    @cached_property
    def _times(self) -> dict[str, OpTimes]:
        return {}

    def times(self, reference: str) -> OpTimes:
        """Times of a network's ops. Raises ConfigError for one that is not written down."""
        if reference not in self._times:
            self._times[reference] = OpTimes(self.gpu, network(reference))
        return self._times[reference]

    def stage(
        self, reference: str, strategy: str, silent: str = Silent.NEVER, *, variants: str = ""
    ) -> StagePlan:
        if reference in self.networks and reference not in ARCHITECTURES:
            return super().stage(reference, strategy, silent, variants=variants)
        ns = tuple(max(1, round(each)) for each in self.times(reference).ns)
        none, blocks = (False,) * len(ns), network(reference).blocks
        plan = StagePlan(ns, none, sum(ns), 0, blocks, on=((GPU, ns),))
        return plan if strategy == BLOCKS else recut(plan, strategy, self.short_ns)

    @cached_property
    def short_ns(self) -> int:
        """The mean of what networks take, as of other devices."""
        return round(fmean(sum(self.times(name).ns) for name in ARCHITECTURES))

    def took(self, action: RunTogether, references: Mapping[str, str]) -> Took:
        """What runs together takes; ``references``: by model, its network."""
        ns = filled_ns = 0.0
        for groups in action.stages:
            parts = [self.times(references[group.dnn]).group(group.ops) for group in groups]
            stage = stage_took(parts, self.gpu.contention)
            ns, filled_ns = ns + stage.ns, filled_ns + stage.filled_ns
        return Took(ns, filled_ns)


def load_device_for_requests(name_or_path: str) -> SeveralDevice:
    """A device with several processors, or with one that runs groups of operators at once, or a
    phone, by its name or file. Raises ConfigError for an unknown name, an unreadable file and
    impossible values."""
    if is_phone(name_or_path):
        return as_several(load_device(name_or_path))
    path = several_path(name_or_path)
    content = read_toml(path)
    return as_tables(TogetherDevice if "together" in content else SeveralDevice, path, content)


def load_together(name_or_path: str) -> TogetherDevice:
    """A device that runs groups of operators at once. Raises ConfigError for another."""
    device = load_device_for_requests(name_or_path)
    if not isinstance(device, TogetherDevice):
        raise ConfigError(
            f"device {device.name!r} runs one operator at a time: choose one whose profile has a "
            "table [together]"
        )
    return device
