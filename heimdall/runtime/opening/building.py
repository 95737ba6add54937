"""The first start on a machine: DNNs run on the CPU until their networks are built for the GPU.

Compiling takes seconds for each network, and no user should face an empty window meanwhile. So
child processes (``building_child``) compile and measure, behind everything else, on all cores;
what they have built is loaded here, in the gaps between frames, and the coordinator moves the DNN
(``DnnBuilt``). One that cannot be built stays on the CPU. Binaries, which some drivers compile
everything once more for, come last: from then on a start loads all networks before its first frame.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heimdall.analyzer.partition import Cut
from heimdall.analyzer.precision import engine_for
from heimdall.analyzer.profile import NetworkProfile, to_stage_plan
from heimdall.analyzer.profile_file import from_json
from heimdall.engine.base import Engine
from heimdall.engine.network import LoadedNetwork
from heimdall.errors import DeviceError, HeimdallError
from heimdall.models.base import Network as Declared
from heimdall.system import python
from heimdall.system.child import Outcome, watch
from heimdall.system.faults import say
from heimdall.system.priority import in_turn, second_in_line
from heimdall.system.workers import Workers
from heimdall.vocabulary.plans import StagePlan
from heimdall.vocabulary.processors import GPU

if TYPE_CHECKING:
    from heimdall.graph.onnx_file import Inputs
    from heimdall.runtime.execution.deployment import Deployment
    from heimdall.runtime.execution.processors import Processors

log = logging.getLogger(__name__)

CHILD = python.command("heimdall.runtime.opening.building_child")
SILENCE_S = 180.0  # of a child, then it hangs: the largest kernel takes a slow board a minute
MOST_CHILDREN = 4  # each takes some 300 MB
_LOOK_S = 0.2
KEEP = "keep"  # instead of a network: make binaries of all that were built


@dataclass(frozen=True)
class BuildTarget:
    """Where children work: the device as the app asked for it, which must turn out to be ``label``
    again. ``mode``: what profiles are kept under. ``units`` and ``choices``: of the app's engine. A
    child that found them out itself would make other ops where the app's OpenCL was opened with
    other cores, or tuning has saved a choice since."""

    device: str | None
    label: str
    mode: str
    units: int
    choices: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Task:
    """A network to build."""

    path: str
    shapes: Inputs
    precision: str
    forced: Sequence[str]

    @classmethod
    def of(cls, deployment: Deployment, declared: Declared) -> Task:
        """One of a DNN's networks."""
        shapes = {
            name: given if isinstance(given, int | float) else list(given)
            for name, given in declared.shapes.items()
        }
        dnn = deployment.dnn
        path = str(declared.path.resolve())
        return cls(path, shapes, str(dnn.precision), list(dnn.force_fallback))


class _Waiting:
    """A DNN, and those of its networks that are there already, a stage each."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment, self.failed = deployment, False
        self.stages: list[tuple[LoadedNetwork, StagePlan] | None] = [None] * len(deployment.graphs)


@dataclass(frozen=True)
class _Item:
    """One network of a DNN that waits."""

    waiting: _Waiting
    stage: int
    task: Task

    @property
    def key(self) -> tuple[str, int]:
        return self.waiting.deployment.dnn.name, self.stage


class Building:
    """Networks that are being built. ``pause`` is called in the midst of loading one, before each
    use of the GPU, and returns when no frame is near, or the event that it is given is set: the
    run ends then; ``built`` and ``failed`` hear of each DNN
    once; all of that on threads of its own. ``cut``: how they are cut from now on.
    """

    def __init__(
        self,
        deployments: Sequence[Deployment],
        processors: Processors,
        device: str | None,
        cut: Cut,
    ) -> None:
        self._deployments, self._processors = deployments, processors
        self._device, self.cut = device, cut
        self._gpu: Engine = processors.gpu
        self.over = threading.Event()  # every DNN is on the GPU, or will not be
        self._stop, self._counting = threading.Event(), threading.Lock()
        self._queue: deque[_Item] = deque()
        self._steps: dict[tuple[str, int], str] = {}  # of networks that children are at
        self._total = sum(len(each.graphs) for each in deployments)
        self._done = 0
        self._began_s = self._counted_s = 0.0  # when children began; when the newest was done
        self._left = len(deployments)
        self._children = min(len(processors.cores), MOST_CHILDREN)
        # With ``start``: one that never begins need not be closed.
        self._watchers: Workers | None = None
        self._loader: Workers | None = None

    def start(
        self,
        pause: Callable[[threading.Event], object],
        built: Callable[[Deployment], object],
        failed: Callable[[Deployment, str], object],
    ) -> None:
        """Begin; see the class."""
        self._until_gap, self._built, self._failed = pause, built, failed
        self._watchers, self._loader = Workers("build", self._children), Workers("load")
        self._loader.submit(self._find_out)

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
        begun = f"building networks for the GPU: {self._done} of {self._total}"
        left_s = self._left_s()
        begun += f", about {left_s} s left" if left_s else ""
        return f"{begun} ({steps})" if steps else begun

    def _left_s(self) -> int:
        """Seconds until all are built, if the others take as long as those that are; 0 where
        nothing is known, or it takes longer than that."""
        if not self._done:
            return 0
        each_s = (self._counted_s - self._began_s) / self._done
        left_s = each_s * (self._total - self._done) - (time.monotonic() - self._counted_s)
        return 5 * math.ceil(left_s / 5) if left_s > 10 else max(math.ceil(left_s), 0)

    def stop(self) -> None:
        """Have the children end; what they have built remains."""
        self._stop.set()

    def close(self) -> None:
        """``stop``, and wait for that."""
        self.stop()
        for each in (self._watchers, self._loader):
            if each is not None:
                each.close()

    # --- on the threads that watch, a child each ---------------------------------------------

    def _watch(self, place: BuildTarget) -> None:
        """Have networks built until none is left; where a child has ended, by another one."""
        while (item := self.next()) is not None:
            tended = _Tended(self, place, item)
            try:
                outcome = watch(
                    CHILD,
                    limit_s=SILENCE_S,
                    hear=tended.hear,
                    give=tended.give,
                    stop=self._stop,
                    yields=True,
                )
            except Exception as error:  # none can be started, or it says something unexpected
                outcome = Outcome({}, "", _words(error))
            if outcome.ended and not self._stop.is_set():
                tended.ended(outcome)

    def next(self) -> _Item | None:
        """The next network that no child is at work on."""
        with contextlib.suppress(IndexError):
            while not self._stop.is_set():
                item = self._queue.popleft()
                if not item.waiting.failed:
                    return item
                self._count()
        return None

    def wait(self) -> bool:
        """Wait until all is built. Returns True if binaries are to be made then."""
        while self._gpu.saves_later and not self._stop.is_set():
            if self.over.wait(_LOOK_S):
                return True
        return False

    def at(self, item: _Item, step: str) -> None:
        """A child is at a network."""
        self._steps[item.key] = step

    def done(self, item: _Item, profile: str) -> None:
        """A child has built a network."""
        self._steps.pop(item.key, None)
        assert self._loader is not None
        self._loader.submit(self._load, item, profile)

    # --- on the thread that loads --------------------------------------------------------------

    def _find_out(self) -> None:
        """What the device can do, before anything is built for it."""
        try:
            self._gpu = self._processors.gpu.completed(self._stop)
            place = self._planned()
        except Exception as error:
            self._queue.clear()
            for deployment in self._deployments:
                self.fail(_Waiting(deployment), _words(error))
            return
        self._began_s = time.monotonic()
        assert self._watchers is not None
        for _ in range(min(self._children, len(self._queue))):
            self._watchers.submit(self._watch, place)

    def _planned(self) -> BuildTarget:
        """Queue what is to be built; where children do that."""
        for deployment in self._deployments:
            waiting = _Waiting(deployment)
            for stage, declared in enumerate(deployment.pipeline.networks):
                self._queue.append(_Item(waiting, stage, Task.of(deployment, declared)))
        return BuildTarget(
            device=self._device,
            label=self._gpu.describe()["device"],
            mode=self._processors.profile_key,
            units=self._gpu.units,
            choices=self._gpu.choices,
        )

    def _load(self, item: _Item, profile: str) -> None:
        """Load one network here; with the last one of its DNN, hand that over."""
        waiting = item.waiting
        try:
            if not self._stop.is_set() and not waiting.failed:
                waiting.stages[item.stage] = self._loaded(item, from_json(profile.encode()))
                self._hand_over(waiting)
        except Exception as error:
            log.debug("loading %s failed", item.task.path, exc_info=True)
            self.fail(waiting, _words(error))
        finally:
            self._count()

    def _loaded(self, item: _Item, profile: NetworkProfile) -> tuple[LoadedNetwork, StagePlan]:
        """The interpreter lock, which frames need, is held for tens of ms while weights are packed:
        shortest when nothing interrupts that."""
        deployment = item.waiting.deployment
        graph, dnn = deployment.graphs[item.stage], deployment.dnn
        second_in_line()
        try:
            engine = engine_for(self._gpu, graph, dnn.precision, dnn.force_fallback)
            network = engine.load_beside(graph, self._pause, force_fallback=dnn.force_fallback)
        finally:
            in_turn()
        if [op.name for op in profile.ops] != [op.name for op in network.ops]:
            raise DeviceError(f"the ops of {graph.name} are not those that were built: start again")
        plan = to_stage_plan(profile, self.cut, exits=network.exits, states=network.held())
        return network, plan

    def _hand_over(self, waiting: _Waiting) -> None:
        stages = [stage for stage in waiting.stages if stage is not None]
        if len(stages) < len(waiting.stages):
            return
        self._pause()
        waiting.deployment.place(GPU, [network for network, _ in stages])
        waiting.deployment.complete([plan for _, plan in stages])
        self._built(waiting.deployment)
        self._one_less()

    def _pause(self) -> None:
        """Wait for a gap. Raises DeviceError when the run has ended: nothing is loaded for it."""
        self._until_gap(self._stop)
        if self._stop.is_set():
            raise DeviceError("the run has ended")

    # --- on any of them ------------------------------------------------------------------------

    def fail(self, waiting: _Waiting, why: str) -> None:
        """A DNN stays where it is; said once."""
        with self._counting:
            known, waiting.failed = waiting.failed, True
        if not known and not self._stop.is_set():
            try:
                self._failed(waiting.deployment, why)
            except Exception:
                log.exception(
                    "%s: telling that it was not built failed", waiting.deployment.dnn.name
                )
            self._one_less()

    def lost(self, item: _Item, why: str) -> None:
        """A network cannot be built."""
        self._steps.pop(item.key, None)
        self._count()
        self.fail(item.waiting, f"{Path(item.task.path).name}: {why}")

    def _count(self) -> None:
        """One more is there, or will not be."""
        with self._counting:
            self._done, self._counted_s = self._done + 1, time.monotonic()

    def _one_less(self) -> None:
        with self._counting:
            self._left -= 1
            if not self._left:
                self.over.set()


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, HeimdallError) else say(error)


class _Tended:
    """What one child is at work on; it begins with ``item``."""

    def __init__(self, building: Building, place: BuildTarget, item: _Item) -> None:
        self._building, self._lines = building, self._told(place)
        self._at: _Item | None = item

    def give(self) -> str | None:
        """What it is told next."""
        return next(self._lines, None)

    def _told(self, place: BuildTarget) -> Iterator[str]:
        """Where it works; the first network, then others; then to make binaries of them."""
        yield json.dumps(asdict(place))  # its choices may be too long for a command line
        while self._at is not None:
            yield json.dumps(asdict(self._at.task))
            self._at = self._building.next()
        if self._building.wait():
            yield KEEP

    def hear(self, message: Mapping[str, Any]) -> None:
        """What the child reports."""
        if self._at is None:
            return
        if "step" in message:
            self._building.at(self._at, message["step"])
        else:
            profile, item, self._at = message["value"], self._at, None
            self._building.done(item, profile)

    def ended(self, outcome: Outcome) -> None:
        """The child has ended before it was done."""
        why = f"while {outcome.step or 'it began'}: {outcome.ended}"
        if self._at is not None:
            self._building.lost(self._at, why)
        else:
            log.warning("binaries of what was compiled are not kept (%s)", why)
