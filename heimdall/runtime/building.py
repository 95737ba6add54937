"""The first start on a machine: DNNs run on the CPU until their networks are built for the GPU.

Compiling takes seconds for each network, and nobody should look at an empty window meanwhile. So
child processes (``building_child``) compile and measure, at the lowest priority, on all cores;
what they have built is loaded here, in the gaps between frames, and the coordinator moves the DNN
(``DnnBuilt``). One that cannot be built stays on the CPU. Binaries, which some drivers compile
everything once more for, come last: from then on a start loads all networks before its first frame.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from heimdall.analyzer.precision import engine_for
from heimdall.analyzer.profile import NetworkProfile, to_stage_plan
from heimdall.analyzer.profile_file import from_json
from heimdall.engine.base import Engine, Network
from heimdall.errors import DeviceError, HeimdallError
from heimdall.models.base import Network as Declared
from heimdall.system.child import STOPPED, watch
from heimdall.system.faults import say
from heimdall.system.priority import in_turn, second_in_line
from heimdall.system.workers import Workers
from heimdall.vocabulary.plans import StagePlan
from heimdall.vocabulary.processors import GPU

if TYPE_CHECKING:
    from heimdall.runtime.deployment import Deployment
    from heimdall.runtime.processors import Processors

log = logging.getLogger(__name__)

CHILD = (sys.executable, "-m", "heimdall.runtime.building_child")
SILENCE_S = 180.0  # of a child, then it hangs: the largest kernel takes a slow board a minute
MOST_CHILDREN = 4  # each takes some 300 MB
BUILD, KEEP = "build", "keep"


@dataclass(frozen=True)
class Task:
    """What a child is given: a network, and the device as the app asked for it, which must turn out
    to be ``label`` again. ``mode``: what profiles are kept under. ``what``: build it, or keep the
    binaries of what is built."""

    what: str
    device: str | None
    label: str
    mode: str
    cores: tuple[int, ...]
    gpu_cores: tuple[int, ...]
    path: str
    shapes: Mapping[str, Sequence[int]]
    precision: str
    forced: tuple[str, ...]


@dataclass
class _Waiting:
    """A DNN, and those of its networks that are there already, a stage each."""

    deployment: Deployment
    stages: list[_Stage | None]
    failed: bool = False


@dataclass(frozen=True)
class _Stage:
    network: Network
    plan: StagePlan


Built = Callable[["Deployment"], object]
Failed = Callable[["Deployment", str], object]


class Building:
    """Networks that are being built. ``pause`` is called in the midst of loading one, before each
    use of the GPU, and returns when no frame is near; ``built`` and ``failed`` hear of each DNN
    once; all of that on threads of its own.
    """

    def __init__(
        self,
        deployments: Sequence[Deployment],
        processors: Processors,
        device: str | None,
        gap_ns: int,
        children: int | None = None,
    ) -> None:
        self._deployments, self._processors = deployments, processors
        self._device, self._gap_ns = device, gap_ns
        self.over = threading.Event()  # every DNN is on the GPU, or will not be
        self._stop = threading.Event()
        self._loading, self._counting = threading.Lock(), threading.Lock()
        self._gpu: Engine = processors.gpu
        self._steps: dict[tuple[str, int], str] = {}  # networks that children are at
        self._total = sum(len(each.graphs) for each in deployments)
        self._done = 0
        self._left = len(deployments)
        self._tasks: list[Task] = []
        self._workers = Workers("build", children or min(len(processors.cores), MOST_CHILDREN))

    def start(self, pause: Callable[[], object], built: Built, failed: Failed) -> None:
        """Begin; see the class."""
        self._pause, self._built, self._failed = pause, built, failed
        self._workers.submit(self._find_out)

    @property
    def progress(self) -> tuple[int, int]:
        """Networks that are built, or will not be, and all of them."""
        return self._done, self._total

    @property
    def message(self) -> str:
        """What is being done, for people; empty when it is over."""
        if self.over.is_set():
            return ""
        steps = ", ".join(f"{dnn}: {step}" for (dnn, _), step in sorted(self._steps.items()))
        begun = f"building networks for the GPU, {self._done} of {self._total} are there"
        return f"{begun} ({steps})" if steps else begun

    def close(self) -> None:
        """End the children; what they have built remains."""
        self._stop.set()
        self._workers.close()

    # --- on its threads ------------------------------------------------------------------------

    def _find_out(self) -> None:
        """What the device can do, before anything is built for it."""
        try:
            self._gpu = self._processors.gpu.completed()
        except HeimdallError as error:
            for deployment in self._deployments:
                self._give_up(deployment, str(error))
            return
        for deployment in self._deployments:
            tasks = [self._task(deployment, each) for each in deployment.pipeline.networks]
            waiting = _Waiting(deployment, [None] * len(tasks))
            for stage, task in enumerate(tasks):
                self._workers.submit(self._build, waiting, stage, task)
            self._tasks += tasks

    def _task(self, deployment: Deployment, declared: Declared) -> Task:
        software = self._processors.software
        return Task(
            what=BUILD,
            device=self._device,
            label=self._gpu.describe()["device"],
            mode=self._processors.profile_key,
            cores=self._processors.cores,
            gpu_cores=software.gpu_cores if software else (),
            path=str(declared.path.resolve()),
            shapes={name: list(shape) for name, shape in declared.shapes.items()},
            precision=str(deployment.dnn.precision),
            forced=tuple(deployment.dnn.force_fallback),
        )

    def _build(self, waiting: _Waiting, stage: int, task: Task) -> None:
        """Build one network; with the last one of its DNN, hand that over."""
        deployment, key = waiting.deployment, (waiting.deployment.dnn.name, stage)
        try:
            if not self._stop.is_set() and not waiting.failed:
                profile = self._in_child(task, key)
                with self._loading:
                    waiting.stages[stage] = self._load(deployment, stage, profile)
                    if all(waiting.stages):
                        self._hand_over(waiting)
        except Exception as error:
            log.debug("building %s failed", task.path, exc_info=True)
            waiting.failed = True
            why = str(error) if isinstance(error, HeimdallError) else say(error)
            self._give_up(deployment, f"{deployment.graphs[stage].name}: {why}")
        finally:
            self._steps.pop(key, None)
            self._done += 1

    def _in_child(self, task: Task, key: tuple[str, int]) -> NetworkProfile:
        def hear(step: str) -> None:
            self._steps[key] = step

        command = [*CHILD, json.dumps(asdict(task))]
        outcome = watch(command, limit_s=SILENCE_S, hear=hear, stop=self._stop)
        if outcome.ended:
            raise DeviceError(f"while {outcome.step or 'it began'}: {outcome.ended}")
        return from_json(outcome.found["profile"].encode())

    def _load(self, deployment: Deployment, stage: int, profile: NetworkProfile) -> _Stage:
        """Load what a child has built. The interpreter lock, which frames need, is held for tens of
        ms while weights are packed: shortest when nothing interrupts that."""
        graph, dnn = deployment.graphs[stage], deployment.dnn
        second_in_line()
        try:
            engine = engine_for(self._gpu, graph, dnn.precision, dnn.force_fallback)
            network = engine.load_beside(graph, self._pause, force_fallback=dnn.force_fallback)
        finally:
            in_turn()
        if [op.name for op in profile.ops] != [op.name for op in network.ops]:
            raise DeviceError("its ops are not those that were built; start again")
        return _Stage(network, to_stage_plan(profile, self._gap_ns))

    def _hand_over(self, waiting: _Waiting) -> None:
        stages = [stage for stage in waiting.stages if stage is not None]
        self._pause()
        waiting.deployment.place(GPU, [stage.network for stage in stages])
        waiting.deployment.complete([stage.plan for stage in stages])
        self._built(waiting.deployment)
        self._one_less()

    def _give_up(self, deployment: Deployment, why: str) -> None:
        if not self._stop.is_set():
            self._failed(deployment, why)
        self._one_less()

    def _one_less(self) -> None:
        with self._counting:
            self._left -= 1
            last = not self._left
        if last:
            self.over.set()
            if self._gpu.saves_later and not self._stop.is_set():
                self._workers.submit(self._keep)

    def _keep(self) -> None:
        """Have binaries made of what is built, one network after the other."""
        for task in self._tasks:
            command = [*CHILD, json.dumps(asdict(replace(task, what=KEEP)))]
            outcome = watch(command, limit_s=SILENCE_S, stop=self._stop)
            if outcome.ended and outcome.ended != STOPPED:
                log.warning("no binary of %s is kept: %s", task.path, outcome.ended)
