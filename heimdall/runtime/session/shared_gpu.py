"""What the sessions of a process share: one GPU, and one coordinator over it."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from heimdall.analyzer.partition import Cut
from heimdall.coordinator import Coordinator
from heimdall.runtime.execution.deployment import Deployment, Networks
from heimdall.runtime.execution.executor import Executor
from heimdall.runtime.execution.ledger import Message
from heimdall.runtime.execution.model_loading import ModelCache
from heimdall.runtime.execution.processors import Processors
from heimdall.runtime.execution.protocols import Coordinates, Executes
from heimdall.runtime.execution.router import Client, Inbox, Router
from heimdall.runtime.loop.frame_loop import FrameLoop
from heimdall.runtime.telemetry.spans import Spans
from heimdall.runtime.telemetry.trace import Tracer
from heimdall.schedulers import Scheduler, name_of
from heimdall.system.clock import AwakeClock
from heimdall.vocabulary.enums import Luminance
from heimdall.vocabulary.events import DnnAdded, DnnRemoved, RenderingStopped
from heimdall.vocabulary.plans import DnnPlan

Policy = str | type[Scheduler] | Scheduler

log = logging.getLogger(__name__)


class Names(dict[str, str]):
    """A session's DNNs as the coordinator calls them -> as its app does; ``inverse``."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__(names)
        self.inverse = {own: name for name, own in names.items()}


class System(Protocol):
    """What decides and what carries out: Heimdall's coordinator and executor, or a baseline."""

    scheduler: str  # what results call it
    mode: str
    prioritized: bool  # drivers are asked to draw before they run networks

    def coordinator(self, plans: Sequence[DnnPlan], interval_ns: int) -> Coordinates:
        """What decides for DNNs of these plans."""

    def executor(
        self,
        inbox: queue.SimpleQueue[Message],
        processors: Processors,
        spans: Spans,
        clock: Callable[[], int],
    ) -> Executes:
        """What carries decisions out."""


class Coordinated:
    """Heimdall's own: a policy, its chunk mode, and what else the coordinator takes."""

    prioritized = True

    def __init__(
        self,
        policy: Policy,
        mode: str,
        urgent: bool,
        *,
        cpu_workers: int = 1,
        luminance: str = Luminance.CELLS,
        **rules: Any,
    ) -> None:
        """``urgent``: worker threads may be real-time ones. ``cpu_workers``: of the CPU.
        ``luminance``: of what a change of scene is summed. ``rules``: see ``Coordinator``."""
        self.scheduler, self.mode, self._policy = name_of(policy), mode, policy
        self._urgent, self._cpu_workers, self._luminance = urgent, cpu_workers, luminance
        self._rules = rules

    def coordinator(self, plans: Sequence[DnnPlan], interval_ns: int) -> Coordinates:
        return Coordinator(
            plans,
            scheduler=self._policy,
            mode=self.mode,
            frame_interval_ns=interval_ns,
            cpu_workers=self._cpu_workers,
            repeats=False,
            **self._rules,
        )

    def executor(
        self,
        inbox: queue.SimpleQueue[Message],
        processors: Processors,
        spans: Spans,
        clock: Callable[[], int],
    ) -> Executes:
        workers, luminance = self._cpu_workers, self._luminance
        engines = processors.by_id
        return Executor(inbox, spans, clock, self._urgent, workers, luminance, engines)


class SharedGpu:
    """Opened by the first session with its DNNs' ``plans``; others join and leave.

    ``scheduler`` and ``mode``: what all of them run under.
    """

    def __init__(
        self,
        processors: Processors,
        system: System,
        plans: Sequence[DnnPlan],
        interval_ns: int,
        *,
        traced: bool = False,
        owned: bool = True,
    ) -> None:
        """``owned``: the process is there for its sessions. It never pauses then but when nothing
        runs at all, and that does not count; a host's may do something else between two calls."""
        self.processors = processors
        self.scheduler, self.mode = system.scheduler, system.mode
        self.clock: Callable[[], int] = AwakeClock() if owned else time.perf_counter_ns
        self.busy = False  # a session is within a call that serves
        self.tracer = Tracer(time.perf_counter_ns()) if traced else None
        self.spans = Spans(self.tracer, processors.further)
        self.inbox = Inbox()
        self.coordinator = system.coordinator(plans, interval_ns)
        self.config = self.coordinator.config() if traced else {}
        self.replaces = getattr(self.coordinator, "replaces", False)  # where scenes change
        self.executor = system.executor(self.inbox, processors, self.spans, self.clock)
        engines = processors.by_id
        self.model_cache = ModelCache(engines, processors.cpu, processors.profile_key)
        self.router = Router(self.coordinator, self.executor, self.inbox, self.clock)
        if self.tracer is not None and self.coordinator.keeps_gaps:
            self.router.observers.append(self.tracer.step)
        self.loops: list[FrameLoop] = []  # of the sessions that draw
        self._plans = {plan.name: plan for plan in plans}  # in the coordinator's order
        self._networks: dict[str, Networks] = {}
        self._used = set(self._plans)  # at any time
        self._free = set(self._plans)  # known to the coordinator, and no session's yet
        self._sessions, self._naming = 0, threading.Lock()
        self._free_gpu = False  # the coordinator has been told that no session draws

    def names_for(self, dnns: Iterable[str]) -> Names:
        """What the coordinator is to call a session's DNNs: one whose name another session has
        taken goes by its name and the session's number."""
        with self._naming:  # clients' threads name models, too
            self._sessions += 1
            # Never a name that was used before: what its job reports late would go to the wrong
            # one.
            taken = self._used - self._free
            names = {f"{dnn}:{self._sessions}" if dnn in taken else dnn: dnn for dnn in dnns}
            self._used |= names.keys()
        return Names(names)

    def admit(self, names: Names, deployments: Mapping[str, Deployment]) -> None:
        """Tell the coordinator of a session's DNNs, now that they can be run."""
        for name, dnn in names.items():
            deployment = self._networks[name] = deployments[dnn]
            if name in self._free:  # it has known of the first ones all along
                self._free.remove(name)
                continue
            plan = self._plans[name] = deployment.plan.named(name)
            self.router.tell(DnnAdded(plan))

    def keep(self, plan: DnnPlan, networks: Networks) -> None:
        """A queued DNN that the coordinator is told of."""
        self._plans[plan.name], self._networks[plan.name] = plan, networks

    def forget(self, name: str) -> None:
        """A queued DNN that it has been told to drop."""
        del self._plans[name], self._networks[name]

    @property
    def partition_of_requests(self) -> str | None:
        """The strategy that the policy wants networks cut by; None: as those of apps are."""
        policy = getattr(self.coordinator, "scheduler", None)
        return getattr(policy, "partition", None)

    def leave(self, client: Client, names: Mapping[str, str]) -> None:
        """A session ends: its DNNs are dropped. Returns when nothing runs for them any more,
        or has not ended for so long that it is left behind."""
        for name in names:
            self.router.tell(DnnRemoved(name))
            del self._plans[name], self._networks[name]
        self.router.leave(client)
        self.executor.remove(names)
        self.free_gpu()

    def free_gpu(self) -> None:
        """Where no session draws, or has for a while, chunks need not wait for frames."""
        now_ns = self.clock()
        drawn = any(loop.start_ns + loop.interval_ns > now_ns for loop in self.loops)
        if not drawn and not self._free_gpu:
            self._free_gpu = True
            self.router.tell(RenderingStopped())

    def occupy_gpu(self) -> None:
        """A frame is about to start: from now on there are gaps."""
        self._free_gpu = False

    def partition(self, cut: Cut) -> tuple[tuple[tuple[int, int], ...], ...]:
        """The partition of every network, cut another way, as Reconfigured takes it."""
        self.router.catch_up()  # some may have been added by another thread
        each = (self._networks[name] for name in self._plans)
        return tuple(chunks for deployment in each for chunks in deployment.partition(cut))

    def next_start_ns(self, but: FrameLoop, now_ns: int) -> int | None:
        """When another session's next frame starts, if one draws that is being driven."""
        if len(self.loops) < 2:
            return None
        starts = [loop.start_ns for loop in self.loops if loop is not but]
        return min((start for start in starts if start > now_ns), default=None)

    def free_start_ns(self, loop: FrameLoop, now_ns: int) -> int:
        """When the first frame of a session best starts: at once, or half-way between two frames
        of another."""
        others = [each for each in self.loops if each is not loop]
        if not others:
            return now_ns
        first = others[0]
        start_ns = first.start_ns + first.interval_ns // 2
        while start_ns < now_ns:
            start_ns += first.interval_ns
        return start_ns

    def save_trace(self, path: Path, app: str) -> None:
        """Write what was traced. Raises ConfigError when it cannot be written."""
        if self.tracer is not None:
            device = str(self.processors.gpu.describe()["device"])
            self.tracer.save(path, self.config, {"app": app, "device": device})

    def close(self) -> None:
        """End the threads, when no session is left."""
        self.executor.close()
