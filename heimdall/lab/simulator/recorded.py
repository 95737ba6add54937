"""A recorded run (``heimdall run --trace``) as a machine to simulate."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from heimdall.errors import ConfigError
from heimdall.lab.bench.observed import UNSEEN_NS, Observed
from heimdall.lab.bench.scenario import Scenario
from heimdall.lab.bench.systems import System
from heimdall.lab.simulator.machine import Machine, SimulatedDnn
from heimdall.runtime.execution.deployment import plan_of
from heimdall.runtime.telemetry.trace import Recording, read_recording
from heimdall.vocabulary.enums import ChunkMode

RECORDED = (".json", ".mcap")  # what files with a recording end in
_PLENTY = 64
_WARM_UP_NS = 5_000_000_000


@dataclass(frozen=True)
class RecordedEvents:
    """The times at which a DNN was asked for, from the first frame on."""

    times_ns: tuple[int, ...]

    def waits_s(self, seed: int) -> Iterator[float]:
        """Seconds from each event to the next; there is no more after the last."""
        before_ns = 0
        for time_ns in self.times_ns:
            yield (time_ns - before_ns) / 1e9
            before_ns = time_ns


class RecordedRun(Observed):
    """A recorded run to be simulated. Raises ConfigError for one that is damaged or too short."""

    def __init__(self, recording: Recording) -> None:
        super().__init__(recording)
        config = recording.config
        try:
            mode = config["mode"]
            name = config["scheduler"] + (f"-{mode}" if mode != ChunkMode.ELASTIC else "")
            name += "" if config["offload"] else "-nooffload"
            self._cpu_workers = int(config.get("cpu_workers", 1))
            self.system = System(name, config["scheduler"], mode, offload=config["offload"])
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"the recording is damaged: {error!r}") from error
        if not self.frames_ns or self.frames_ns[-1] - self.frames_ns[0] <= _WARM_UP_NS:
            raise ConfigError(
                f"the recording is too short to be simulated: more than {_WARM_UP_NS / 1e9:g} s "
                "are needed, for the first are warm-up"
            )
        self._warm_ns = self.frames_ns[0] + _WARM_UP_NS

    @property
    def seconds(self) -> float:
        """How long it ran after the warm-up."""
        return (self.frames_ns[-1] - self._warm_ns) / 1e9

    @property
    def fps(self) -> float:
        """The mean frame rate after the warm-up."""
        frames = [time_ns for time_ns in self.frames_ns if time_ns > self._warm_ns]
        return 1e9 * (len(frames) - 1) / max(frames[-1] - frames[0], 1)

    def latency_ms(self, dnn: str) -> float | None:
        """The mean latency of a DNN after the warm-up; None when it did not run."""
        found = [took_ns for time_ns, took_ns in self.finished_ns[dnn] if time_ns > self._warm_ns]
        return statistics.fmean(found) / 1e6 if found else None

    def machine(self) -> Machine:
        """The machine as it was seen. Its cores are never short and its pool is never full: the
        times that were seen include what was waited there."""
        cost_ns = max(stage.chunk_cost_ns for plan in self.plans for stage in plan.stages)
        return Machine(
            name="recorded",
            gpu="recorded",
            cpu="recorded",
            render_ns=self.typical("render"),
            batch_ns=0,
            cores=_PLENTY,
            pool_threads=_PLENTY,
            chunk_cost_ns=cost_ns,
            handoff_ns=self.handoffs(),
            move_ns=self.typical("move"),
            guard_ns=self.typical("guard"),
            cpu_workers=self._cpu_workers,
        )

    def dnns(self) -> list[SimulatedDnn]:
        """The DNNs with their measured profiles and what surrounded them."""
        found = []
        for plan in self.plans:
            stages = range(len(plan.stages))
            tasks = [self.samples("tasks", plan.name, str(stage)) for stage in stages]
            event = None
            slope, delays_ns = self.gpu_line(plan.name)
            if not plan.continuous:
                times = tuple(ns - self.frames_ns[0] for ns in self.requests_ns[plan.name])
                event = RecordedEvents(tuple(max(ns, 0) for ns in times))
            found.append(
                SimulatedDnn(
                    plan=plan,
                    prepare_ns=tuple(
                        self.samples("prepare", plan.name, str(stage)) or (UNSEEN_NS,)
                        for stage in stages
                    ),
                    decode_ns=0,  # it is not in the recording
                    event=event,
                    tasks=tuple(seen or (1,) for seen in tasks),
                    luminance_difference=self.differences(plan.name),
                    gpu_slowdown=slope,
                    gpu_delay_ns=delays_ns,
                    cpu_slowdown=self.cpu_slowdowns(plan.name),
                )
            )
        return found


def recorded_machine(
    scenario: Scenario, path: str, render_ms: float | None = None
) -> tuple[Machine, list[SimulatedDnn]]:
    """A scenario on the machine of a recorded run that had DNNs of the same names.

    Raises ConfigError when it had not, or is no usable recording.
    """
    run = RecordedRun(read_recording(path))
    machine = run.machine()
    if render_ms is not None:
        machine = replace(machine, render_ns=round(render_ms * 1e6))
    known = {dnn.name: dnn for dnn in run.dnns()}
    found = []
    check_recorded(path, [dnn.name for dnn in scenario.declared()], known)
    for dnn in scenario.declared():
        recorded = known[dnn.name]
        plan, event = plan_of(dnn, recorded.plan.stages), scenario.settings(dnn.name).event
        found.append(replace(recorded, plan=plan, event=event or recorded.event))
    return machine, found


def check_recorded(path: str, dnns: Sequence[str], recorded: Collection[str]) -> None:
    """Raise ConfigError unless all of these DNNs are among those that were recorded."""
    missing = [name for name in dnns if name not in recorded]
    if missing:
        raise ConfigError(
            f"{path} is a recording of another app: it has {', '.join(sorted(recorded))}, and not "
            f"{', '.join(missing)}; record the app that is simulated"
        )
