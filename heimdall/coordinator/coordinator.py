"""The coordinator: a state machine that turns what happened into what to do next.

``receive(event, now_ns)`` and ``wake(now_ns)`` return actions; ``next_wakeup_ns()`` says when
``wake`` is due at the latest. Time is an argument: the runtime passes its clock, the simulator a
virtual one, and the same calls give the same actions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import asdict
from math import inf
from typing import Any

from heimdall.coordinator import clients, codec
from heimdall.coordinator.chunking import CHUNKINGS, DEFAULT_MARGIN_NS
from heimdall.coordinator.dispatch import Dispatcher
from heimdall.coordinator.freshness import Freshness
from heimdall.coordinator.gap import Gap
from heimdall.coordinator.job import Dnn, Job, check_chunks
from heimdall.coordinator.jobs import Client, Jobs
from heimdall.coordinator.placement import Placement
from heimdall.coordinator.snapshot import DnnStatus, Snapshot
from heimdall.coordinator.states import CoordinationError
from heimdall.coordinator.supervised import Supervised
from heimdall.coordinator.timing import Chunks, Ranges, Timing
from heimdall.errors import ConfigError, unknown
from heimdall.schedulers import SCHEDULERS, create, name_of
from heimdall.schedulers.base import (
    CHUNK_ENDED,
    FALLBACK_ENDED,
    GAP_OPENED,
    JOB_ARRIVED,
    Scheduler,
)
from heimdall.schedulers.utility import content_terms
from heimdall.system.faults import Faults
from heimdall.vocabulary.enums import Admission, ChunkMode, Content, Name, RenderPriority
from heimdall.vocabulary.events import (
    Action,
    ChunkFinished,
    DnnAdded,
    DnnAdjusted,
    DnnBuilt,
    DnnMoved,
    DnnRemoved,
    Event,
    FallbackFinished,
    FrameArrived,
    FrameRendered,
    InferenceRequested,
    InputReady,
    JobFailed,
    ProcessorBack,
    ProcessorLost,
    Reconfigured,
    RenderingStopped,
    RenderStarted,
    SceneChanged,
    SlowDecision,
)
from heimdall.vocabulary.plans import DnnPlan
from heimdall.vocabulary.processors import CPU, GPU, Processor, check, usual

# A machine that is warm or busy takes a few times as long as one that was profiled.
_TOO_SLOW, _SLOW_CHUNKS = 8, 30  # so many in a row
_SHORT_NS = 2_000_000  # what takes no longer holds nothing up, however long it was to take
_ONE_AT_A_TIME = Admission.values()  # of a DNN's requests, one waits at most


class Coordinator:
    """Shares one GPU between rendering and several DNNs (Heimdall, section 6).

    ``mode``: "elastic" chunks fill the gap, "static" is the paper's partition, one chunk a gap.
    ``margin_ns``: how far a chunk may be expected to exceed the gap (default 0 when elastic, 5 ms
    when static; negative keeps a reserve). ``offload``: move DNNs between GPU and CPU, looked at
    every ``offload_interval_ns`` with the margin m = ``offload_margin``. ``content``: how a
    changing scene counts ("paper" or "aging"). ``render_priority``: "top", or "equal" (chunks
    start without regard to rendering). ``cpu_workers``: how many jobs the CPU runs at once, each
    on a core of its own. ``processors``: all there are, where they are not one GPU and that CPU.
    ``admission``: "one-in-flight" remembers one request while a job runs, "queue(n)" n of them;
    "replace": one, and the job may begin anew (see ``freshness``). Of a queued DNN every request
    becomes a job, with "queue(n)" unless n wait already. ``repeats``: continuous DNNs run back to
    back; else each frame that arrives (FrameArrived) is inferred once by each of them at most.
    Raises ConfigError for anything else.

    ``decisions``: how often the scheduler has been asked. ``faults``: what it did wrong; then
    another policy answered in its place (see ``supervised``).
    """

    keeps_gaps = True

    @property
    def replaces(self) -> bool:
        """True if the coordinator wants to hear of scenes that change (SceneChanged)."""
        return self._freshness is not None

    def __init__(
        self,
        dnns: Sequence[DnnPlan],
        *,
        scheduler: str | type[Scheduler] | Scheduler,
        frame_interval_ns: int,
        mode: str = ChunkMode.ELASTIC,
        offload: bool = True,
        offload_margin: float = 0.2,
        offload_interval_ns: int = 1_000_000_000,
        content: str = Content.AGING,
        render_priority: str = RenderPriority.TOP,
        admission: str = "one-in-flight",
        margin_ns: int | None = None,
        cpu_workers: int = 1,
        repeats: bool = True,
        processors: Sequence[Processor | Mapping[str, Any]] | None = None,
    ) -> None:
        choices: tuple[tuple[str, str, type[Name]], ...] = (
            ("chunk mode", mode, ChunkMode),
            ("content variation", content, Content),
            ("render priority", render_priority, RenderPriority),
        )
        for kind, name, names in choices:
            if name not in names.values():
                raise ConfigError(unknown(kind, name, names))
        if frame_interval_ns <= 0 or offload_interval_ns <= 0:
            raise ConfigError("the frame interval and the offload interval must be above 0 ns")
        if cpu_workers < 1:
            raise ConfigError(f"the CPU needs at least one worker, not {cpu_workers}")
        self._listed = processors is not None  # not merely the usual ones
        self._processors = _as_processors(processors) if processors else usual(cpu_workers)
        if processors is not None:
            check(_as_processors(processors))
        self._dnns = {plan.name: Dnn(plan) for plan in dnns}
        self._gone: set[str] = set()  # DNNs that were removed
        if len(self._dnns) != len(dnns):
            raise ConfigError(f"two DNNs have the same name: {[plan.name for plan in dnns]}")
        self._policy = scheduler
        self.scheduler = scheduler if isinstance(scheduler, Scheduler) else create(scheduler)
        self.decisions = 0
        self.faults = Faults()
        self._interval_ns = frame_interval_ns
        self._mode, self._content, self._admission = mode, content, admission
        self._equal = render_priority == RenderPriority.EQUAL
        margin_ns = DEFAULT_MARGIN_NS[mode] if margin_ns is None else margin_ns
        self._chunking = CHUNKINGS[mode](margin_ns)
        self._gap = Gap(frame_interval_ns)
        self._placement = Placement(
            self._dnns,
            enabled=offload,
            margin=offload_margin,
            interval_ns=offload_interval_ns,
            lanes={each.id: each.lanes for each in self._processors},
        )
        self._jobs = Jobs(
            self._dnns,
            self._placement,
            self._chunking,
            self._gap,
            frame_interval_ns,
            self._processors,
            most_pending=admission_limit(admission),
            repeats=repeats,
            most_waiting=inf if admission in _ONE_AT_A_TIME else admission_limit(admission),
        )
        for dnn in self._dnns.values():
            clients.join(dnn, self._jobs)
        self._freshness = (
            Freshness(self._dnns, self._jobs, self._gap) if admission == Admission.REPLACE else None
        )
        self._dispatcher = self._new_dispatcher()
        self._handlers: dict[type, Callable[[Any, int, list[Action]], str]] = {
            FrameRendered: self._frame_rendered,
            RenderStarted: self._render_started,
            InferenceRequested: self._requested,
            InputReady: self._input_ready,
            ChunkFinished: self._chunk_finished,
            FallbackFinished: self._fallback_finished,
            DnnMoved: self._moved,
            JobFailed: self._failed,
            ProcessorLost: self._lost,
            ProcessorBack: self._back,
            Reconfigured: self._reconfigured,
            RenderingStopped: self._rendering_stopped,
            DnnAdded: self._added,
            DnnRemoved: self._removed,
            DnnBuilt: self._built,
            DnnAdjusted: self._adjusted,
            FrameArrived: self._frame_arrived,
            SceneChanged: self._scene_changed,
            SlowDecision: self._slow_decision,
        }

    # -- the outside -----------------------------------------------------------------------

    def receive(self, event: Event, now_ns: int) -> list[Action]:
        """Tell what happened; get what to do. Raises CoordinationError for an event that cannot
        happen now, and leaves jobs as they were."""
        actions: list[Action] = []
        handler = self._handlers.get(type(event))
        if handler is None:
            raise TypeError(f"not an event: {event!r}")
        decides = self._supervised.policy
        trigger = handler(event, now_ns, actions)
        if self._supervised.observes:
            self._supervised.observe(event)
        if now_ns >= self._jobs.rest_until_ns or now_ns >= self._placement.next_step_ns:
            self._timers(now_ns, actions)
        if self._freshness is not None:
            self._freshness.review(event, now_ns, actions)
        if type(event) is SlowDecision and self._supervised.policy is decides:
            return actions  # it has just been asked, and would be as slow again
        self.decisions += self._dispatcher.dispatch(trigger, now_ns, actions)
        return actions

    def wake(self, now_ns: int) -> list[Action]:
        """What is due by ``now_ns`` without an event: rate caps, retries, the offload step, and
        what a policy wanted to wait for."""
        actions: list[Action] = []
        self._timers(now_ns, actions)
        if self._freshness is not None:
            self._freshness.review(None, now_ns, actions)
        if now_ns >= self._dispatcher.wake_ns:
            self.decisions += self._dispatcher.dispatch("", now_ns, actions)
        return actions

    def next_wakeup_ns(self) -> int | None:
        """When ``wake`` is due at the latest; None when only events matter."""
        due_ns = min(self._jobs.resting.values(), default=inf)
        due_ns = min(due_ns, self._placement.next_step_ns, self._dispatcher.wake_ns)
        return None if due_ns == inf else int(due_ns)

    @property
    def replaced(self) -> str:
        """The name of a policy that failed so often that it is not asked any more; else ""."""
        return self._supervised.replaced

    def config(self) -> dict[str, Any]:
        """The constructor's arguments as JSON data (the scheduler by name), as they are now."""
        listed = {"processors": [asdict(each) for each in self._processors]}
        return {
            **(listed if self._listed else {}),
            **({} if self._jobs.repeats else {"repeats": False}),
            **({"policy": policy} if (policy := self.scheduler.config()) else {}),
            "dnns": [codec.to_dict(dnn.plan) for dnn in self._dnns.values()],
            "scheduler": self.scheduler.name,
            "frame_interval_ns": self._interval_ns,
            "mode": self._mode,
            "offload": self._placement.enabled,
            "offload_margin": self._placement.margin,
            "offload_interval_ns": self._placement.interval_ns,
            "content": self._content,
            "render_priority": RenderPriority.EQUAL if self._equal else RenderPriority.TOP,
            "admission": self._admission,
            "margin_ns": self._chunking.margin_ns,
            "cpu_workers": self._jobs.capacity.get(CPU, 1),
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any], policy: Scheduler | None = None) -> Coordinator:
        """A fresh coordinator from ``config()``; ConfigError when the data does not fit, which
        ``policy`` must where one cannot be made of its name alone: a policy of one's own, or one
        that was made with arguments."""
        arguments = dict(config)
        recorded, name = arguments.pop("policy", {}), arguments.get("scheduler")
        own = isinstance(name, str) and name not in SCHEDULERS
        if recorded or own or policy is not None:
            arguments["scheduler"] = _same(policy, name, recorded)
        try:
            plans = [codec.from_dict(plan) for plan in arguments.pop("dnns")]
            return cls(plans, **arguments)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise ConfigError(f"not a coordinator configuration: {error}") from error

    def snapshot(self, now_ns: int) -> Snapshot:
        """What the overlay shows; changes nothing."""
        self._gap.advance(now_ns)
        dnns = {name: self._status(dnn, now_ns) for name, dnn in self._dnns.items()}
        return Snapshot(now_ns, dnns, copy(self._gap), self.decisions)

    # -- events ----------------------------------------------------------------------------

    def _frame_rendered(self, event: FrameRendered, now_ns: int, out: list[Action]) -> str:
        self._gap.open(now_ns, event.gap_end_ns, busy=self._jobs.on_gpu())
        self._begin(now_ns, out)
        return GAP_OPENED

    def _rendering_stopped(self, event: RenderingStopped, now_ns: int, out: list[Action]) -> str:
        self._gap.open_endless(now_ns)
        self._begin(now_ns, out)
        return GAP_OPENED

    def _begin(self, now_ns: int, out: list[Action]) -> None:
        """The GPU can be used: everything starts, once."""
        if not self._jobs.started:
            self._jobs.started = True
            self._placement.started(now_ns)
            for client in self._jobs.clients.values():
                client.begin(now_ns, out)

    def _render_started(self, event: RenderStarted, now_ns: int, out: list[Action]) -> str:
        self._gap.close(now_ns)
        return ""

    def _requested(self, event: InferenceRequested, now_ns: int, out: list[Action]) -> str:
        self._client(event.dnn).ask(event, now_ns, out)
        return ""

    def _input_ready(self, event: InputReady, now_ns: int, out: list[Action]) -> str:
        job = self._jobs.find(event.job, InputReady)
        if job is None:
            return ""
        dnn = job.owner
        if event.tasks < 0:
            raise CoordinationError(f"job {job.id} of {job.dnn!r}: {event.tasks} inputs are ready")
        job.happened(InputReady)
        dnn.learn_prepare(job.stage, now_ns - job.prepare_ns)
        if job.stage > 0:
            job.stage_costs.learn_tasks(event.tasks)
        elif not self._enqueue(job, event, now_ns):
            self._jobs.drop(job, ProcessorLost, f"{job.processor} lost", now_ns, out)
            return ""
        job.tasks, job.task = event.tasks, 0
        job.begin()
        if event.tasks == 0:
            self._jobs.finish(job, now_ns, out)
        else:
            self._jobs.ready(job, now_ns, out)
        return JOB_ARRIVED

    def _enqueue(self, job: Job, event: InputReady, now_ns: int) -> bool:
        """The first input of a job is ready: its time counts from here. Returns False where the
        processor that it has to run on is lost, and it is not worth waiting for another."""
        dnn, client = job.owner, self._jobs.clients[job.dnn]
        job.processor, job.bound = dnn.processor, self._placement.bound(dnn)
        job.last_op_ns = now_ns
        client.took(event.frame)
        beta, bonus = content_terms(self._content, job.utility, event.luminance_difference)
        if job.enqueued_ns is not None:  # it has begun anew, and is as old and as urgent as it was
            job.beta, job.bonus = max(beta, job.beta), max(bonus, job.bonus)
        else:
            job.enqueued_ns = now_ns
            job.deadline_ns = client.since_ns(job, now_ns) + job.constraint_ns
            job.beta, job.bonus = beta, bonus
        stays = client.newest or bool(self._placement.why_nowhere(dnn))
        return not (stays and job.bound in self._placement.lost)

    def _chunk_finished(self, event: ChunkFinished, now_ns: int, out: list[Action]) -> str:
        processor, elapsed_ns = event.processor, event.elapsed_ns
        if self._jobs.put_back and self._jobs.was_put_back(event):
            return ""
        job = self._jobs.find(event.job, ChunkFinished)
        if job is None:
            return ""
        chunk = job.chunk
        early = chunk.early and event.start_op < event.end_op < chunk.end_op
        if (
            not (event.end_op == chunk.end_op or early)
            or event.start_op != job.next_op
            or processor != job.processor
        ):
            told = (processor, event.start_op, event.end_op)
            asked = (job.processor, job.next_op, chunk.end_op)
            raise CoordinationError(
                f"job {job.id} of {job.dnn!r} runs {asked}, but ChunkFinished says {told}"
            )
        off_ns = event.off_ns or 0
        if min(elapsed_ns, off_ns) < 0:
            raise CoordinationError(f"a chunk of job {job.id} took {elapsed_ns} and {off_ns} ns")
        job.happened(ChunkFinished)
        self._jobs.running[processor].remove(job)
        job.executed_ns += elapsed_ns
        if not chunk.together:  # else it took as long as all of them
            times = self._timing.learn(job, processor, event.start_op, event.end_op, elapsed_ns)
            if off_ns:
                job.stage_costs.learn_fallback(event.start_op, event.end_op, off_ns)
            job.owner.times = times
            if (times > _TOO_SLOW and elapsed_ns > _SHORT_NS) or job.owner.slow_chunks:
                self._may_be_slow(job.owner)
            self._jobs.handed_back(processor, chunk.begin_ns, elapsed_ns + off_ns, now_ns)
        if processor == GPU and not self._jobs.running[GPU]:
            self._gap.chunk_ended(elapsed_ns, off_ns)
        self._jobs.progress(job, event.end_op, now_ns, out)
        return CHUNK_ENDED

    def _fallback_finished(self, event: FallbackFinished, now_ns: int, out: list[Action]) -> str:
        job = self._jobs.find(event.job, FallbackFinished)
        if job is None:
            return ""
        costs = job.stage_costs
        if event.end_op != costs.run_end[job.next_op]:
            raise CoordinationError(
                f"job {job.id} of {job.dnn!r} has fallback ops up to "
                f"{costs.run_end[job.next_op]}, but FallbackFinished says {event.end_op}"
            )
        job.happened(FallbackFinished)
        costs.learn_fallback(job.next_op, event.end_op, now_ns - job.away.since_ns)
        self._jobs.progress(job, event.end_op, now_ns, out)
        return FALLBACK_ENDED

    def _moved(self, event: DnnMoved, now_ns: int, out: list[Action]) -> str:
        self._known_processor(event.processor)
        if event.dnn in self._gone:  # it was on its way when it was removed
            return ""
        dnn = self._dnn(event.dnn)
        if event.processor not in dnn.places:
            raise CoordinationError(f"DNN {event.dnn!r} cannot be on {event.processor!r}")
        self._placement.moved(dnn, event.processor, now_ns, out)
        self._jobs.clients[dnn.name].begin(now_ns, out)
        return CHUNK_ENDED if self._jobs.moved(dnn, now_ns, out) else ""

    def _failed(self, event: JobFailed, now_ns: int, out: list[Action]) -> str:
        job = self._jobs.find(event.job, JobFailed)
        if job is None:
            return ""
        self._jobs.clients[job.dnn].failed(job, event.error, now_ns, out)
        return CHUNK_ENDED  # its processor may be free now

    def _lost(self, event: ProcessorLost, now_ns: int, out: list[Action]) -> str:
        self._known_processor(event.processor)
        self._placement.processor_lost(event.processor, now_ns, out)
        self._jobs.lost(event.processor, now_ns, out)
        for client in self._jobs.clients.values():  # a request that waited may wait in vain now
            client.begin(now_ns, out)
        return ""

    def _back(self, event: ProcessorBack, now_ns: int, out: list[Action]) -> str:
        self._known_processor(event.processor)
        if event.processor not in self._placement.lost:
            return ""
        self._placement.processor_back(event.processor, now_ns, out)
        for client in self._jobs.clients.values():
            client.begin(now_ns, out)
        return CHUNK_ENDED

    def _added(self, event: DnnAdded, now_ns: int, out: list[Action]) -> str:
        plan = event.plan
        if plan.name in self._dnns:
            raise CoordinationError(f"there is a DNN {plan.name!r} already")
        dnn = self._dnns[plan.name] = Dnn(plan)
        self._gone.discard(plan.name)
        clients.join(dnn, self._jobs)
        self._placement.added(dnn, now_ns, out)
        self._jobs.clients[dnn.name].begin(now_ns, out)
        return ""

    def _built(self, event: DnnBuilt, now_ns: int, out: list[Action]) -> str:
        plan = event.plan
        if plan.name in self._gone:  # it was being built when it was removed
            return ""
        dnn = self._dnn(plan.name)
        if dnn.plan.built or not plan.built:
            raise CoordinationError(f"DNN {plan.name!r} has been built before, or is not now")
        dnn.rebuilt(plan)
        clients.join(dnn, self._jobs)
        self._placement.built(dnn, now_ns, out)
        # Its job, too, begins anew, on a newer frame: it may wait, or compute, for seconds.
        self._jobs.drop_all(dnn, DnnBuilt, "built for the GPU", now_ns, out)
        return CHUNK_ENDED  # the CPU may be free now

    def _adjusted(self, event: DnnAdjusted, now_ns: int, out: list[Action]) -> str:
        dnn = self._dnn(event.dnn)
        dnn.adjust(event)
        self._jobs.adjusted(dnn, now_ns, out)
        return ""

    def _frame_arrived(self, event: FrameArrived, now_ns: int, out: list[Action]) -> str:
        those = [self._client(name) for name in event.dnns if name not in self._gone]
        for client in those:
            client.arrived(event.frame, now_ns, out)
        return ""

    def _scene_changed(self, event: SceneChanged, now_ns: int, out: list[Action]) -> str:
        return ""  # where an inference may be replaced, ``review`` hears of it

    def _slow_decision(self, event: SlowDecision, now_ns: int, out: list[Action]) -> str:
        self._supervised.was_slow(event.took_ns, self.decisions)
        return ""

    def _may_be_slow(self, dnn: Dnn) -> None:
        """Say so, once, where it lasts, and where not the whole machine is slow; one whose times
        are guesses still is not."""
        others = [other.times for other in self._dnns.values() if other is not dnn and other.times]
        machine = max(1.0, min(others, default=1.0))
        slow = dnn.times > _TOO_SLOW * machine and dnn.plan.built
        dnn.slow_chunks = dnn.slow_chunks + 1 if slow else 0
        if dnn.slow_chunks == _SLOW_CHUNKS:
            times = f"more than {_TOO_SLOW} times as long as profiled"
            self.faults.report(f"DNN {dnn.name!r}: its chunks take {times}")

    def _removed(self, event: DnnRemoved, now_ns: int, out: list[Action]) -> str:
        dnn = self._dnn(event.dnn)
        del self._dnns[event.dnn]
        self._gone.add(event.dnn)
        self._placement.removed(event.dnn)
        self._jobs.removed(dnn, now_ns, out)
        return CHUNK_ENDED  # its processor may be free now

    def _timers(self, now_ns: int, out: list[Action]) -> None:
        if now_ns >= self._jobs.rest_until_ns:
            self._jobs.resume(now_ns, out)
        if now_ns >= self._placement.next_step_ns:
            self._placement.step(now_ns, self._gap, self._chunking, self._interval_ns, out)

    def _reconfigured(self, event: Reconfigured, now_ns: int, out: list[Action]) -> str:
        costs = [each for dnn in self._dnns.values() for each in dnn.costs]
        if event.mode not in CHUNKINGS or event.frame_interval_ns <= 0:
            raise ConfigError(f"a coordinator cannot be set to {event}")
        if len(costs) != len(event.chunks):
            raise ConfigError(f"{len(costs)} networks need a partition each: {event}")
        partitions = list(zip(costs, event.chunks, strict=True))
        for each, chunks in partitions:
            check_chunks(chunks, each.ops, "a network")
        back = event.scheduler == name_of(self._policy)
        self.scheduler = create(self._policy if back else event.scheduler)
        if event.mode != self._mode:
            self._mode = event.mode
            self._chunking = CHUNKINGS[event.mode](DEFAULT_MARGIN_NS[event.mode])
        self._interval_ns = event.frame_interval_ns
        for each, chunks in partitions:
            each.recut(chunks)
        self._dispatcher = self._new_dispatcher()
        self._placement.evacuate(now_ns, out)  # nothing moves where ranges choose
        self._jobs.reconfigure(self._chunking, self._interval_ns, now_ns, out)
        return ""

    def _new_dispatcher(self) -> Dispatcher:
        renderer = next((each.id for each in self._processors if each.renders), "")
        timing: type[Timing] = Ranges
        if self.scheduler.binds:
            renderer, timing = GPU, Chunks
        self._placement.binds = self.scheduler.binds
        self._supervised = Supervised(self.scheduler, self.faults)
        self._timing = timing(self._gap, self._chunking, renderer, equal=self._equal)
        return Dispatcher(
            self._supervised,
            self._jobs,
            self._placement,
            self._timing,
            self._gap,
            self._processors,
            interval_ns=self._interval_ns,
        )

    # -- look-ups --------------------------------------------------------------------------

    def _dnn(self, name: str) -> Dnn:
        if name not in self._dnns:
            raise CoordinationError(unknown("DNN", name, self._dnns))
        return self._dnns[name]

    def _client(self, name: str) -> Client:
        return self._jobs.clients[self._dnn(name).name]

    def _known_processor(self, name: str) -> None:
        if name not in self._jobs.running:
            raise CoordinationError(unknown("processor", name, self._jobs.running))

    def _status(self, dnn: Dnn, now_ns: int) -> DnnStatus:
        job = dnn.job
        gpu_ns, other_ns, _ = dnn.expected_gpu()
        return DnnStatus(
            name=dnn.name,
            processor=dnn.processor,
            moving_to=self._placement.moving.get(dnn.name, ("", 0))[0],
            state=job.state if job is not None else "idle",
            latency_ns=dnn.last_latency_ns,
            constraint_ns=dnn.constraint_ns,
            utility=job.seen.utility_at(now_ns) if job and job.enqueued_ns is not None else None,
            reason=dnn.last_reason,
            gpu=dnn.inferences[GPU],
            cpu=dnn.inferences[CPU],
            misses=dnn.misses,
            failures=dnn.failures,
            expected_gpu_ns=gpu_ns + other_ns,
            expected_cpu_ns=dnn.expected_cpu_ns(),
        )


def admission_limit(admission: str) -> int:
    """How many requests of one DNN may wait. Raises ConfigError for what is no admission."""
    if admission in _ONE_AT_A_TIME:
        return 1
    match = re.fullmatch(r"queue\(([1-9][0-9]*)\)", admission)
    if match is None:
        raise ConfigError(unknown("admission policy", admission, (*_ONE_AT_A_TIME, "queue(n)")))
    return int(match[1])


def _same(policy: Scheduler | None, name: object, recorded: object) -> Scheduler:
    """The policy, if it is the recorded one."""
    if policy is None and not recorded:
        raise ConfigError(
            f"{unknown('scheduler', str(name), SCHEDULERS)}; if it is a policy of your own, give "
            "its file (--scheduler path/to/file.py[:Class])"
        )
    if policy is None:
        raise ConfigError(f"scheduler {name!r} cannot be made of its name: it had {recorded}")
    if policy.name != name or policy.config() != recorded:
        raise ConfigError(
            f"recorded was scheduler {name!r} with {recorded}, not {policy.name!r} with "
            f"{policy.config()}"
        )
    return policy


def _as_processors(given: Sequence[Processor | Mapping[str, Any]]) -> tuple[Processor, ...]:
    """The processors of a list, or of what ``config()`` wrote of it."""
    return tuple(each if isinstance(each, Processor) else Processor(**each) for each in given)
