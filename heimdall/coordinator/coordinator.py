"""The coordinator: a state machine that turns what happened into what to do next.

``receive(event, now_ns)`` and ``wake(now_ns)`` return actions; ``next_wakeup_ns()`` says when
``wake`` is due at the latest. Time is an argument: the runtime passes its clock, the simulator a
virtual one, and the same calls give the same actions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from heimdall import schedulers
from heimdall.coordinator import codec
from heimdall.coordinator.chunking import Chunking, Elastic, Static
from heimdall.coordinator.dnn import Dnn, remaining
from heimdall.coordinator.events import (
    CPU,
    GPU,
    Action,
    ChunkFinished,
    DnnMoved,
    DnnPlan,
    Drop,
    Event,
    FallbackFinished,
    Finish,
    FrameRendered,
    InferenceRequested,
    InputReady,
    JobFailed,
    Prepare,
    ProcessorBack,
    ProcessorLost,
    RenderStarted,
    RunChunk,
    RunFallback,
)
from heimdall.coordinator.gap import Gap
from heimdall.coordinator.job import CoordinationError, Job, State, check
from heimdall.coordinator.placement import Placement
from heimdall.coordinator.snapshot import DnnStatus, GapStats, Snapshot
from heimdall.errors import ConfigError, unknown
from heimdall.schedulers.base import (
    CHUNK_ENDED,
    FALLBACK_ENDED,
    GAP_OPENED,
    JOB_ARRIVED,
    Choice,
    Scheduler,
    View,
)
from heimdall.schedulers.utility import CONTENTS, content_terms

MODES: dict[str, type[Chunking]] = {"elastic": Elastic, "static": Static}
PROCESSORS = (GPU, CPU)
_REMEMBERED = 256  # ended jobs whose late events are still understood


class Coordinator:
    """Shares one GPU between rendering and several DNNs (Heimdall, section 6).

    ``mode``: "elastic" chunks fill the gap, "static" is the paper's partition, one chunk a gap.
    ``margin_ns``: how far a chunk may be expected to exceed the gap (default 0 when elastic, 5 ms
    when static; negative keeps a reserve). ``offload``: move DNNs between GPU and CPU, looked at
    every ``offload_interval_ns`` with the margin m = ``offload_margin``. ``content``: how a
    changing scene counts ("paper" or "aging"). ``render_priority``: "top", or "equal" (chunks
    start without regard to rendering). ``admission``: "one-in-flight" remembers one request while
    a job runs, "queue(n)" n of them. Raises ConfigError for anything else.
    """

    def __init__(
        self,
        dnns: Sequence[DnnPlan],
        *,
        scheduler: Scheduler | str,
        frame_interval_ns: int,
        mode: str = "elastic",
        offload: bool = True,
        offload_margin: float = 0.2,
        offload_interval_ns: int = 1_000_000_000,
        content: str = "paper",
        render_priority: str = "top",
        admission: str = "one-in-flight",
        margin_ns: int | None = None,
    ) -> None:
        for kind, name, valid in (
            ("chunk mode", mode, MODES),
            ("content variation", content, CONTENTS),
            ("render priority", render_priority, ("top", "equal")),
        ):
            if name not in valid:
                raise ConfigError(unknown(kind, name, valid))
        if frame_interval_ns <= 0 or offload_interval_ns <= 0:
            raise ConfigError("the frame interval and the offload interval must be above 0 ns")
        self._plans = tuple(dnns)
        self._dnns = {plan.name: Dnn(plan) for plan in self._plans}
        if len(self._dnns) != len(self._plans):
            raise ConfigError(f"two DNNs have the same name: {[p.name for p in self._plans]}")
        self.scheduler = schedulers.create(scheduler) if isinstance(scheduler, str) else scheduler
        self.decisions = 0  # calls of the scheduler
        self._interval_ns = frame_interval_ns
        self._mode, self._content, self._admission = mode, content, admission
        self._waiting_limit = _admission_limit(admission)
        self._equal = render_priority == "equal"
        chunking = MODES[mode]
        self._chunking = chunking() if margin_ns is None else chunking(margin_ns)  # type: ignore[call-arg]
        self._gap = Gap(frame_interval_ns)
        self._placement = Placement(
            self._dnns, enabled=offload, margin=offload_margin, interval_ns=offload_interval_ns
        )
        self._running: dict[str, Job | None] = dict.fromkeys(PROCESSORS)
        self._jobs: dict[int, Job] = {}  # in flight, oldest first
        self._ended: dict[int, tuple[str, State]] = {}
        self._next_job = 0
        self._started = False
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
        }

    # -- the outside -----------------------------------------------------------------------

    def receive(self, event: Event, now_ns: int) -> list[Action]:
        """Tell what happened; get what to do. Raises CoordinationError for an event that cannot
        happen now, and leaves jobs as they were."""
        actions: list[Action] = []
        self._gap.advance(now_ns)
        trigger = self._handlers[type(event)](event, now_ns, actions)
        self.scheduler.observe(event)
        self._timers(now_ns, actions)
        self._dispatch(trigger, now_ns, actions)
        return actions

    def wake(self, now_ns: int) -> list[Action]:
        """What is due by ``now_ns`` without an event: rate caps, retries, the offload step."""
        actions: list[Action] = []
        self._gap.advance(now_ns)
        self._timers(now_ns, actions)
        return actions

    def next_wakeup_ns(self) -> int | None:
        """When ``wake`` is due at the latest; None when only events matter."""
        times = [dnn.start_ns for dnn in self._dnns.values() if dnn.start_ns is not None]
        if self._placement.next_step_ns is not None:
            times.append(self._placement.next_step_ns)
        return min(times, default=None)

    def config(self) -> dict[str, Any]:
        """The constructor's arguments as JSON data (the scheduler by name)."""
        return {
            "dnns": [codec.to_dict(plan) for plan in self._plans],
            "scheduler": self.scheduler.name,
            "frame_interval_ns": self._interval_ns,
            "mode": self._mode,
            "offload": self._placement.enabled,
            "offload_margin": self._placement.margin,
            "offload_interval_ns": self._placement.interval_ns,
            "content": self._content,
            "render_priority": "equal" if self._equal else "top",
            "admission": self._admission,
            "margin_ns": self._chunking.margin_ns,
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Coordinator:
        """A fresh coordinator from ``config()``; ConfigError when the data does not fit."""
        arguments = dict(config)
        try:
            plans = [codec.from_dict(plan) for plan in arguments.pop("dnns")]
            return cls(plans, **arguments)
        except (KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"not a coordinator configuration: {error}") from error

    def snapshot(self, now_ns: int) -> Snapshot:
        """What the overlay shows; changes nothing."""
        gap = self._gap
        stats = GapStats(
            gap.opened, gap.opened_ns, gap.runnable_ns, gap.busy_ns, gap.overruns, gap.usual_ns
        )
        dnns = {name: self._status(dnn, now_ns) for name, dnn in self._dnns.items()}
        return Snapshot(now_ns, dnns, stats, self.decisions)

    # -- events ----------------------------------------------------------------------------

    def _frame_rendered(self, event: FrameRendered, now_ns: int, out: list[Action]) -> str:
        self._gap.open(now_ns, event.gap_end_ns, busy=self._running[GPU] is not None)
        if not self._started:
            self._started = True
            self._placement.started(now_ns)
            for dnn in self._dnns.values():
                self._begin(dnn, now_ns, out)
        return GAP_OPENED

    def _render_started(self, event: RenderStarted, now_ns: int, out: list[Action]) -> str:
        self._gap.close(now_ns)
        return ""

    def _requested(self, event: InferenceRequested, now_ns: int, out: list[Action]) -> str:
        dnn = self._dnn(event.dnn)
        if not dnn.plan.continuous:  # a continuous one runs again anyway
            dnn.pending = min(dnn.pending + 1, self._waiting_limit)
            self._begin(dnn, now_ns, out)
        return ""

    def _input_ready(self, event: InputReady, now_ns: int, out: list[Action]) -> str:
        job = self._job(event.job, "InputReady")
        if job is None:
            return ""
        dnn = job.owner
        if event.tasks < 0:
            raise CoordinationError(f"job {job.id} of {job.dnn!r}: {event.tasks} inputs are ready")
        dnn.learn_prepare(job.stage, now_ns - job.prepare_ns)
        if job.stage == 0:
            job.processor = dnn.processor
            job.enqueued_ns = job.last_op_ns = now_ns
            job.deadline_ns = now_ns + job.constraint_ns
            job.beta, job.bonus = content_terms(
                self._content, job.utility, event.luminance_difference
            )
            if job.processor in self._placement.lost:
                self._drop(job, "ProcessorLost", f"{job.processor} lost", now_ns, out)
                return ""
        else:
            dnn.costs[job.stage].learn_tasks(event.tasks)
        job.tasks, job.task, job.next_op = event.tasks, 0, 0
        if event.tasks == 0:
            self._finish(job, "InputReady", now_ns, out)
        else:
            self._ready(job, "InputReady", out)
        return JOB_ARRIVED

    def _chunk_finished(self, event: ChunkFinished, now_ns: int, out: list[Action]) -> str:
        job = self._job(event.job, "ChunkFinished")
        if job is None:
            return ""
        told = (event.processor, event.start_op, event.end_op)
        asked = (job.processor, job.next_op, job.running_end_op)
        if told != asked:
            raise CoordinationError(
                f"job {job.id} of {job.dnn!r} runs {asked}, but ChunkFinished says {told}"
            )
        self._running[event.processor] = None
        costs = job.owner.costs[job.stage]
        costs.learn(event.processor, event.start_op, event.end_op, event.elapsed_ns)
        job.executed_ns += event.elapsed_ns
        if event.processor == GPU:
            self._gap.chunk_ended(event.elapsed_ns)
            job.owner.window.gpu_ns += event.elapsed_ns
        self._progress(job, event.end_op, "ChunkFinished", now_ns, out)
        return CHUNK_ENDED

    def _fallback_finished(self, event: FallbackFinished, now_ns: int, out: list[Action]) -> str:
        job = self._job(event.job, "FallbackFinished")
        if job is None:
            return ""
        costs = job.owner.costs[job.stage]
        if event.end_op != costs.run_end[job.next_op]:
            raise CoordinationError(
                f"job {job.id} of {job.dnn!r} has fallback ops up to "
                f"{costs.run_end[job.next_op]}, but FallbackFinished says {event.end_op}"
            )
        costs.learn_fallback(job.next_op, event.end_op, event.elapsed_ns)
        self._progress(job, event.end_op, "FallbackFinished", now_ns, out)
        return FALLBACK_ENDED

    def _moved(self, event: DnnMoved, now_ns: int, out: list[Action]) -> str:
        dnn = self._dnn(event.dnn)
        _known_processor(event.processor)
        self._placement.moved(dnn, event.processor, now_ns, out)
        self._begin(dnn, now_ns, out)
        return ""

    def _failed(self, event: JobFailed, now_ns: int, out: list[Action]) -> str:
        job = self._job(event.job, "JobFailed")
        if job is None:
            return ""
        job.owner.start_ns = job.owner.failed(now_ns, self._interval_ns)
        self._drop(job, "JobFailed", event.error, now_ns, out)
        return CHUNK_ENDED  # its processor may be free now

    def _lost(self, event: ProcessorLost, now_ns: int, out: list[Action]) -> str:
        _known_processor(event.processor)
        self._placement.processor_lost(event.processor, now_ns, out)
        for job in list(self._jobs.values()):
            if job.enqueued and job.processor == event.processor:
                self._drop(job, "ProcessorLost", f"{event.processor} lost", now_ns, out)
        return ""

    def _back(self, event: ProcessorBack, now_ns: int, out: list[Action]) -> str:
        _known_processor(event.processor)
        self._placement.processor_back(event.processor, now_ns, out)
        for dnn in self._dnns.values():
            self._begin(dnn, now_ns, out)
        return CHUNK_ENDED

    # -- the life of a job -----------------------------------------------------------------

    def _begin(self, dnn: Dnn, now_ns: int, out: list[Action]) -> None:
        """Admit the next job of a DNN, now or when its rate cap (or a failure) allows."""
        wanted = dnn.pending > 0 or (dnn.plan.continuous and self._started)
        if dnn.job is not None or not wanted or not self._placement.runs_on(dnn):
            return
        due_ns = dnn.start_ns or 0
        if dnn.last_prepare_ns is not None:
            due_ns = max(due_ns, dnn.last_prepare_ns + dnn.plan.min_interval_ns)
        if due_ns > now_ns:
            dnn.start_ns = due_ns
            return
        plan = dnn.plan
        job = Job(
            id=self._next_job,
            dnn=dnn.name,
            priority=plan.priority,
            utility=plan.utility,
            constraint_ns=plan.constraint_ns,
            costs=dnn.costs,
            arrival_ns=now_ns,
            owner=dnn,
            prepare_ns=now_ns,
        )
        self._next_job += 1
        dnn.pending = max(dnn.pending - 1, 0)
        dnn.job, dnn.last_prepare_ns, dnn.start_ns = job, now_ns, None
        self._jobs[job.id] = job
        out.append(Prepare(job.id, job.dnn, 0))

    def _ready(self, job: Job, event: str, out: list[Action]) -> None:
        """The job could go on: to the pool for fallback ops, else it waits for its processor."""
        costs = job.owner.costs[job.stage]
        if job.processor == GPU and costs.fallback[job.next_op]:
            job.to(State.FALLBACK, event)
            end_op = costs.run_end[job.next_op]
            out.append(RunFallback(job.id, job.dnn, job.stage, job.task, job.next_op, end_op))
        else:
            job.to(State.READY, event)
        self._estimate(job)

    def _progress(self, job: Job, end_op: int, event: str, now_ns: int, out: list[Action]) -> None:
        """Ops up to ``end_op`` are done: on with the task, the next one, the next stage, or end."""
        job.next_op, job.last_op_ns = end_op, now_ns
        if end_op == job.owner.costs[job.stage].ops:
            if job.task + 1 < job.tasks:
                job.task, job.next_op = job.task + 1, 0
            elif job.stage + 1 < len(job.owner.costs):
                job.to(State.PREPARING, event)
                job.stage, job.task, job.tasks, job.next_op = job.stage + 1, 0, 1, 0
                job.prepare_ns = now_ns
                out.append(Prepare(job.id, job.dnn, job.stage))
                return
            else:
                self._finish(job, event, now_ns, out)
                return
        self._ready(job, event, out)

    def _estimate(self, job: Job) -> None:
        """What is left, as the policies see it."""
        if job.processor == GPU:
            job.remaining_ns, job.other_ns, chunks = remaining(job.owner, job)
            job.gaps = self._chunking.gaps(chunks, job.remaining_ns, self._gap.usual_ns)
        else:
            stages = job.owner.costs[job.stage :]
            job.remaining_ns = sum(costs.cpu_ns() for costs in stages)
            job.other_ns, job.gaps = 0, max(1, -(-job.remaining_ns // self._interval_ns))

    def _finish(self, job: Job, event: str, now_ns: int, out: list[Action]) -> None:
        job.to(State.FINISHED, event)
        latency_ns = job.last_op_ns - job.enqueued_ns
        missed = latency_ns > job.constraint_ns
        job.owner.finished(latency_ns, job.processor, missed)
        stages = len(job.owner.costs)
        out.append(Finish(job.id, job.dnn, job.processor, latency_ns, missed, job.chunks, stages))
        self._end(job, now_ns, out)

    def _drop(self, job: Job, event: str, reason: str, now_ns: int, out: list[Action]) -> None:
        job.to(State.DROPPED, event)
        if self._running[job.processor] is job:
            self._running[job.processor] = None
        if event == "ProcessorLost" and not job.owner.plan.continuous:
            job.owner.pending = max(job.owner.pending, 1)  # the request is not to blame
        out.append(Drop(job.id, job.dnn, reason))
        self._end(job, now_ns, out)

    def _end(self, job: Job, now_ns: int, out: list[Action]) -> None:
        del self._jobs[job.id]
        self._ended[job.id] = (job.dnn, job.state)
        if len(self._ended) > _REMEMBERED:
            del self._ended[next(iter(self._ended))]
        job.owner.job = None
        self._begin(job.owner, now_ns, out)

    # -- scheduling ------------------------------------------------------------------------

    def _timers(self, now_ns: int, out: list[Action]) -> None:
        for dnn in self._dnns.values():
            if dnn.start_ns is not None and now_ns >= dnn.start_ns:
                dnn.start_ns = None
                self._begin(dnn, now_ns, out)
        step_ns = self._placement.next_step_ns
        if step_ns is not None and now_ns >= step_ns:
            self._placement.step(now_ns, self._gap, self._chunking, self._interval_ns, out)

    def _dispatch(self, trigger: str, now_ns: int, out: list[Action]) -> None:
        """A scheduling event for every idle processor."""
        for processor in PROCESSORS:
            if self._running[processor] is None and processor not in self._placement.lost:
                jobs = [
                    job
                    for job in self._jobs.values()
                    if job.state is State.READY and job.processor == processor
                ]
                if jobs:
                    self._offer(processor, jobs, trigger, now_ns, out)
        self._gap.runnable = self._running[GPU] is not None or any(
            job.state is State.READY and job.processor == GPU for job in self._jobs.values()
        )

    def _offer(
        self, processor: str, jobs: list[Job], trigger: str, now_ns: int, out: list[Action]
    ) -> None:
        """Let the policy choose among ``jobs``; it is asked only if one of them can start."""
        if processor == GPU:
            jobs = self._fitting(jobs, trigger, now_ns)
        else:
            for job in jobs:  # the system preempts on a CPU: no need to cut
                job.end_op = job.owner.costs[job.stage].ops
        if not jobs:
            return
        if processor not in self.scheduler.processors:
            oldest = min(jobs, key=lambda job: (job.enqueued_ns, job.id))
            self._start(oldest, oldest.end_op, "first come", now_ns, out)
            return
        if trigger not in self.scheduler.triggers:
            return
        self.decisions += 1
        choice = self.scheduler.select(self._view(processor, jobs, trigger, now_ns), now_ns)
        if choice is not None:
            self._apply(choice, now_ns, out)

    def _fitting(self, jobs: list[Job], trigger: str, now_ns: int) -> list[Job]:
        """The jobs that may start a GPU chunk now, each with the chunk's end proposed."""
        gap, end_op = self._gap, self._chunking.end_op
        if self._equal:  # rendering comes as it comes; a chunk is still as long as a gap
            left_ns, fresh = gap.usual_ns, True
        elif gap.is_open and self._chunking.may_start(gap, trigger == GAP_OPENED):
            left_ns, fresh = gap.left_ns(now_ns), gap.fresh(now_ns)
        else:
            return []
        fitting = []
        for job in jobs:
            costs = job.owner.costs[job.stage]
            job.end_op = end_op(costs, job.next_op, left_ns, gap.usual_ns, fresh)
            if job.end_op > job.next_op:
                fitting.append(job)
        return fitting

    def _view(self, processor: str, jobs: list[Job], trigger: str, now_ns: int) -> View:
        return View(
            processor=processor,
            trigger=trigger,
            jobs=jobs,
            in_flight=self._jobs.values(),
            waiting={name: dnn.pending for name, dnn in self._dnns.items() if dnn.pending},
            gap_end_ns=max(self._gap.end_ns, now_ns),
            gap_ns=self._gap.usual_ns,
            interval_ns=self._interval_ns,
        )

    def _apply(self, choice: Choice, now_ns: int, out: list[Action]) -> None:
        for chosen in choice.assignments:
            job = self._jobs.get(chosen.job)
            whose = f"scheduler {self.scheduler.name!r} chose job {chosen.job}"
            if job is None or job.state is not State.READY:
                raise CoordinationError(f"{whose}, which could not run: choose from view.jobs")
            costs = job.owner.costs[job.stage]
            if job.processor != chosen.processor or self._running[chosen.processor] is not None:
                raise CoordinationError(f"{whose} for {chosen.processor!r}, which cannot run it")
            last = costs.run_end[job.next_op] if chosen.processor == GPU else costs.ops
            if not job.next_op < chosen.end_op <= last:
                raise CoordinationError(
                    f"{whose} up to op {chosen.end_op}; its chunk from op {job.next_op} "
                    f"may end at {last} at most"
                )
            self._start(job, chosen.end_op, choice.reason, now_ns, out)

    def _start(self, job: Job, end_op: int, reason: str, now_ns: int, out: list[Action]) -> None:
        job.to(State.RUNNING, "RunChunk")
        processor, costs = job.processor, job.owner.costs[job.stage]
        self._running[processor] = job
        job.running_end_op, job.started_ns = end_op, now_ns
        job.chunks += 1
        job.owner.last_reason = reason
        if processor == GPU:
            self._gap.chunk_started(now_ns)
        expected_ns = costs.expected_ns(processor, job.next_op, end_op)
        out.append(
            RunChunk(
                job.id, job.dnn, job.stage, job.task, processor, job.next_op, end_op,
                expected_ns, reason,
            )
        )  # fmt: skip

    # -- look-ups --------------------------------------------------------------------------

    def _dnn(self, name: str) -> Dnn:
        if name not in self._dnns:
            raise CoordinationError(unknown("DNN", name, self._dnns))
        return self._dnns[name]

    def _job(self, job_id: int, event: str) -> Job | None:
        """The job in flight that ``event`` may happen to; None for a late event of an ended job."""
        job = self._jobs.get(job_id)
        if job is not None:
            check(job.id, job.dnn, job.state, event)
            return job
        if job_id not in self._ended:
            raise CoordinationError(f"job {job_id} is not known: {event} cannot happen to it")
        name, state = self._ended[job_id]
        check(job_id, name, state, event)
        if event == "JobFailed" and state is State.FINISHED:
            self._dnns[name].failures += 1  # its result could not be decoded
        return None

    def _status(self, dnn: Dnn, now_ns: int) -> DnnStatus:
        job = dnn.job
        gpu_ns, other_ns, _ = dnn.expected_gpu()
        return DnnStatus(
            name=dnn.name,
            processor=dnn.processor,
            moving_to=self._placement.moving.get(dnn.name, ("", 0))[0],
            state=job.state.value if job is not None else "idle",
            latency_ns=dnn.last_latency_ns,
            constraint_ns=dnn.constraint_ns,
            utility=job.utility_at(now_ns) if job is not None and job.enqueued else None,
            reason=dnn.last_reason,
            gpu=dnn.inferences[GPU],
            cpu=dnn.inferences[CPU],
            misses=dnn.misses,
            failures=dnn.failures,
            expected_gpu_ns=gpu_ns + other_ns,
            expected_cpu_ns=dnn.expected_cpu_ns(),
        )


def _admission_limit(admission: str) -> int:
    """How many requests of one DNN may wait."""
    if admission == "one-in-flight":
        return 1
    match = re.fullmatch(r"queue\(([1-9][0-9]*)\)", admission)
    if match is None:
        raise ConfigError(unknown("admission policy", admission, ("one-in-flight", "queue(n)")))
    return int(match[1])


def _known_processor(name: str) -> None:
    if name not in PROCESSORS:
        raise CoordinationError(unknown("processor", name, PROCESSORS))
