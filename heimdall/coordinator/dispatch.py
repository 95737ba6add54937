"""Scheduling events: which jobs wait, which processors have room, and the policy's choice.

The queue holds every job from when its first input is ready to when its last op has run. A choice
is a value: it is checked as a whole, then applied as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from operator import index
from typing import NamedTuple

from heimdall.coordinator import together
from heimdall.coordinator.chunking import part_ns
from heimdall.coordinator.gap import Gap
from heimdall.coordinator.job import Chunk, Job
from heimdall.coordinator.jobs import Jobs
from heimdall.coordinator.placement import Placement
from heimdall.coordinator.states import (
    FALLBACK,
    PREPARING,
    READY,
    RUNNING,
    CoordinationError,
    State,
)
from heimdall.coordinator.supervised import Supervised, text
from heimdall.coordinator.timing import Timing
from heimdall.schedulers.base import (
    FALLBACK_ENDED,
    JOB_ARRIVED,
    Assignment,
    Choice,
    JobView,
    Scheduler,
    View,
)
from heimdall.vocabulary.events import Action, Drop, RunChunk, RunTogether, Yield
from heimdall.vocabulary.processors import GPU, Processor
from heimdall.vocabulary.reasons import EXPIRED, FIRST_COME, GOES_ON

_MAY_PREEMPT = frozenset({JOB_ARRIVED, FALLBACK_ENDED})
_made = tuple.__new__  # a View in each decision: half as long as by its constructor
_WORTH_NS = 2_000_000  # what a more urgent job must save: cutting has a price too


# A range of a job that starts: (job, the variant to go on as, start, end, processor, expected ns).
# It has to wait where its end is its start.
_Start = tuple[Job, str, int, int, str, int]
_Launch = tuple[RunTogether, dict[int, Job]]
_Checked = tuple[Choice, Sequence[_Start], _Launch | None]


class _Lookup(NamedTuple):
    """What policies may ask of a moment beside what its view holds. ``ends``: what fits the
    processor that draws, of the jobs that are ready, where that is known already."""

    dispatcher: Dispatcher
    now_ns: int
    ends: dict[int, int] | None

    def free_ns(self) -> Mapping[str, int]:
        return self.dispatcher.free_ns(self.now_ns)

    def running(self) -> Sequence[JobView]:
        return [job.seen for job in self.dispatcher.jobs_that_are(RUNNING)]

    def away(self) -> Sequence[JobView]:
        dispatcher = self.dispatcher
        if not dispatcher.jobs.fall_back:
            return ()
        return [job.seen for job in dispatcher.jobs_that_are(FALLBACK)]

    def preparing(self) -> Sequence[str]:
        return [job.dnn for job in self.dispatcher.jobs_that_are(PREPARING)]

    def longest(self, job: JobView, processor: str, hold_ns: float = 0) -> int:
        return self.dispatcher.timing.longest(job, processor, hold_ns)

    def fitting(self, jobs: Sequence[JobView], processor: str) -> dict[int, int]:
        if self.ends is not None and processor == self.dispatcher.timing.renderer:
            return self.ends
        return self.dispatcher.timing.fitting(jobs, processor)


class Dispatcher:
    """Keeps processors busy. ``wake_ns``: when the policy wants to be asked again, though nothing
    has happened."""

    def __init__(
        self,
        supervised: Supervised,
        jobs: Jobs,
        placement: Placement,
        timing: Timing,
        gap: Gap,
        processors: Sequence[Processor],
        *,
        interval_ns: int,
    ) -> None:
        self._supervised, self.jobs, self._placement = supervised, jobs, placement
        policy = supervised.policy
        self.timing, self._gap, self._interval_ns = timing, gap, interval_ns
        self._lanes = [(each.id, each.lanes) for each in processors]
        own = policy.processors
        self._own_lanes = [each for each in self._lanes if own is None or each[0] in own]
        self._own = {"", *(id for id, _ in self._own_lanes)}
        self._requeues, self._triggers = policy.requeues, policy.triggers
        self._drops = type(policy).hopeless is not Scheduler.hopeless
        self._draws_only = self._own == {"", timing.renderer}  # all that the policy fills draws
        self._at_renderer = jobs.running.get(timing.renderer, [])
        # What runs on the one lane that the policy fills, where there is one.
        lone = len(self._own_lanes) == 1 and self._own_lanes[0][1] == 1
        self._at_lane = jobs.running[self._own_lanes[0][0]] if lone else []
        # Where a policy places them by when they were admitted, jobs in flight are the queue.
        self._places = type(policy).place is not Scheduler.place
        self._queue: list[Job] = []
        self._held: set[str] = set()  # processors on which something runs together
        self.wake_ns: float = inf
        jobs.changed = list(jobs.in_flight.values()) if self._places else None
        for job in jobs.in_flight.values():
            job.placed = None

    def dispatch(self, trigger: str, now_ns: int, out: list[Action]) -> int:
        """A scheduling event for every idle processor; returns how often the policy was asked."""
        due_ns, asked = self._supervised.due_ns, 0
        self.wake_ns = due_ns if due_ns > now_ns else inf
        jobs = self.jobs
        if jobs.changed:
            self._renew(jobs.changed, now_ns)
        if jobs.serve and (self._drops or jobs.expire):
            self._drop_hopeless(now_ns, out)
        own = self._own
        mine: list[Job] = []
        others: list[Job] = []
        for job in self._queue if self._places else jobs.in_flight.values():
            if job.state is READY:
                (mine if job.bound in own else others).append(job)
        runnable = bool(
            self._at_renderer or (mine if self._draws_only else self._for_renderer(mine, others))
        )
        if runnable is not self._gap.runnable:
            self._gap.advance(now_ns)
            self._gap.runnable = runnable
        if mine:
            if trigger in _MAY_PREEMPT and self._at_renderer:
                self._preempt(mine, now_ns, out)
            if not self._at_lane:
                asked = self._ask(mine, trigger, now_ns, out)
        if others:
            self._serve_others(others, trigger, now_ns, out)
        return asked

    def _for_renderer(self, mine: list[Job], others: list[Job]) -> bool:
        """True if any of these jobs may run on the processor that draws."""
        return any(job.bound in ("", self.timing.renderer) for job in (*mine, *others))

    # -- the queue -------------------------------------------------------------------------

    def _renew(self, changed: list[Job], now_ns: int) -> None:
        """Take out jobs that have ended, and place those that are ready."""
        queue, ready, requeues = self._queue, [], self._requeues
        for job in changed:
            if job.state is READY:
                if requeues or job.placed is None:
                    ready.append(job)
            elif job.id not in self.jobs.in_flight and job.placed is not None:
                queue.remove(job)
                job.placed = None
        changed.clear()
        for job in ready:  # which may be there twice
            again = job.placed is not None
            at = job.stage, job.task, job.next_op
            if job.placed == at:
                continue
            job.placed = at
            if again:
                queue.remove(job)
            queue.insert(self._place(job, now_ns), job)

    def _place(self, job: Job, now_ns: int) -> int:
        return self._supervised.place(job.seen, [each.seen for each in self._queue], now_ns)

    def _drop_hopeless(self, now_ns: int, out: list[Action]) -> None:
        for job in self._queue if self._places else tuple(self.jobs.in_flight.values()):
            if job.request is None or job.state is not READY:
                continue  # an app's is on the newest frame there was
            reason = EXPIRED if job.expired(now_ns) else ""
            if reason or (self._drops and (reason := self._supervised.hopeless(job.seen, now_ns))):
                self.jobs.drop(job, Drop, reason, now_ns, out)

    # -- processors ------------------------------------------------------------------------

    def _idle(self, trigger: str) -> list[str]:
        """A processor's id for each lane that the policy may give something to."""
        jobs, lost = self.jobs, self._placement.lost
        closed = self.timing.closed(trigger, jobs.going_on)
        idle: list[str] = []
        for id, lanes in self._own_lanes:
            if id == closed or id in lost:
                continue
            busy = jobs.running[id]
            if id in self._held:  # what runs together has all lanes until it ended
                if busy:
                    continue
                self._held.remove(id)
            if not busy:
                idle += (id,) * lanes
            elif len(busy) < lanes:
                idle += (id,) * (lanes - len(busy))
        return idle

    def free_ns(self, now_ns: int) -> dict[str, int]:
        """For each processor that works: when it is expected to have a free lane."""
        running, lost = self.jobs.running, self._placement.lost
        free_ns: dict[str, int] = {}
        for id, lanes in self._lanes:
            if id not in lost:
                busy = running[id]
                full = len(busy) >= lanes or (bool(busy) and id in self._held)
                end_ns = min([job.chunk.end_ns for job in busy]) if full else 0
                free_ns[id] = end_ns if end_ns > now_ns else now_ns
        return free_ns

    def jobs_that_are(self, state: State) -> list[Job]:
        """The jobs in flight in this state."""
        return [job for job in self.jobs.in_flight.values() if job.state is state]

    # -- asking ----------------------------------------------------------------------------

    def _ask(self, ready: list[Job], trigger: str, now_ns: int, out: list[Action]) -> int:
        """Let the policy choose among the jobs that it decides for, and start what it chooses.
        Returns how often it was asked."""
        timing, fitting = self.timing, None
        asks = trigger in self._triggers or now_ns >= self._supervised.due_ns
        if not asks and not timing.holds_fallback:
            return 0
        idle = self._idle(trigger)
        if not idle:
            return 0
        if timing.holds_fallback and self._goes_on(ready, idle, now_ns, out):
            ready = [job for job in ready if job.state is READY]
        if not (asks and idle and ready):
            return 0
        timing.look(now_ns)
        seen = [job.seen for job in ready]
        if self._draws_only:
            fitting = timing.fitting(seen, timing.renderer)
            if not fitting:
                return 0
        gap_ns, handoff_ns = self._gap.next_ns(now_ns), self.jobs.handoff_ns
        lookup = _made(_Lookup, (self, now_ns, fitting))
        lanes = tuple(idle)  # whatever a policy does to what it is given
        moment = seen, lanes, self._interval_ns, gap_ns, trigger, timing.cuts_anywhere, handoff_ns
        view = _made(View, (*moment, lookup))
        found = self._supervised.decide(self._chosen, _acts, view, now_ns)
        due_ns = self._supervised.due_ns
        self.wake_ns = due_ns if due_ns > now_ns else inf
        if found is not None:
            choice, starts, launch = found
            if choice.wake_ns < self.wake_ns:
                self.wake_ns = choice.wake_ns
            for start in starts:
                self._start(start, choice.reason, now_ns, out)
            if launch is not None:
                self._start_together(launch, choice.reason, now_ns, out)
        return 1

    def _chosen(self, policy: Scheduler, view: View, now_ns: int) -> _Checked | None:
        """What a policy chooses, checked as a whole. Raises CoordinationError for a choice that
        cannot be, and whatever the policy raises. Nothing is changed here."""
        choice = policy.select(view, now_ns)
        if choice is None:
            return None
        if not choice.wake_ns > now_ns:  # it would be asked again and again
            raise CoordinationError("wants to be woken at a time that has passed")
        if type(choice.reason) is not str:
            text(choice.reason)
        if len(choice.assignments) == 1:  # nearly always
            (only,) = choice.assignments
            if not (only.group or only.stage or only.ops):
                return choice, (self._start_of(only, view.idle),), None
        if choice.together:
            return choice, (), self._launch_of(choice, view.idle, now_ns)
        return choice, self._starts_of(choice, view.idle), None

    def _goes_on(self, ready: list[Job], idle: list[str], now_ns: int, out: list[Action]) -> bool:
        """True if a chunk whose fallback ops have run goes on: the GPU is still its own.
        Rendering keeps its turn."""
        if GPU not in idle:
            return False
        for job in ready:
            if job.chunk_end_op:
                idle.remove(GPU)
                if not self.timing.drawing:
                    end_op = min(job.chunk_end_op, job.stage_costs.run_end[job.next_op])
                    self._run(job, end_op, GPU, GOES_ON, now_ns, out)
                return True
        return False

    def _serve_others(
        self, others: list[Job], trigger: str, now_ns: int, out: list[Action]
    ) -> None:
        """Fill processors that the policy does not decide for, first come, first served: the system
        preempts on a CPU, and a server is asked for whole inferences."""
        self.timing.look(now_ns)
        closed = {self.timing.closed(trigger, self.jobs.going_on), *self._placement.lost}
        order = {
            processor: at for at, processor in enumerate(dict.fromkeys(j.bound for j in others))
        }
        others.sort(key=lambda job: (order[job.bound], job.enqueued_ns, job.id))
        for job in others:
            processor = job.bound
            if processor in closed or not self.jobs.has_room(processor):
                continue
            end_op = self.timing.longest(job.seen, processor)
            if end_op > job.next_op:
                self._run(job, end_op, processor, FIRST_COME, now_ns, out)

    def _preempt(self, ready: list[Job], now_ns: int, out: list[Action]) -> None:
        """Let the chunk that runs end early for a more urgent job that fits behind it, if that
        saves it some of its wait."""
        gap, running = self._gap, self._at_renderer
        if len(running) != 1 or not gap.is_open:
            return
        (busy,) = running
        chunk = busy.chunk
        if not chunk.early or chunk.yields:
            return
        free_ns = now_ns + 2 * part_ns(busy.stage_costs.chunk_cost_ns)  # two have been handed over
        if chunk.end_ns - free_ns <= _WORTH_NS:
            return
        left_ns, preempts = gap.next_ns(now_ns) - free_ns, self._supervised.preempts
        for job in ready:
            if job.bound and job.bound != self.timing.renderer:
                continue
            if not preempts(job.seen, busy.seen):
                continue
            if self.timing.fits(job.stage_costs, job.next_op, left_ns):
                chunk.yields = True
                out.append(Yield(busy.id, busy.dnn, f"{job.dnn} is more urgent"))
                return

    # -- choices: checked as a whole, then applied as a whole ----------------------------------

    def _starts_of(self, choice: Choice, idle: Sequence[str]) -> Sequence[_Start]:
        lanes = list(idle)
        starts: list[_Start] = []
        for each in choice.assignments:
            start = self._start_of(each, lanes)
            if any(start[0] is job for job, *_ in starts):
                raise self._wrong(each, "twice")
            starts.append(start)
            lanes.remove(each.processor)
        return starts

    def _start_of(self, chosen: Assignment, lanes: Sequence[str]) -> _Start:
        """The range that was chosen, shortened to what fits. ``lanes``: those that are left."""
        job = self._ready(chosen)
        processor, costs = chosen.processor, job.stage_costs
        variant, end, start = chosen.variant, index(chosen.end_op), job.next_op
        if processor not in lanes:
            raise self._wrong(chosen, f"but {processor!r} has no free lane")
        if variant:
            if variant not in job.variants:
                raise self._wrong(chosen, f"as {variant!r}, which it cannot become")
            start = costs.variants[variant].next_op[job.passed_op]
        if not start < end <= costs.ops:
            raise self._wrong(chosen, f"up to op {end}: it is at op {start} of {costs.ops}")
        if processor == GPU and costs.fallback[start]:  # of the variant's head: the pool runs it
            return job, variant, start, start, processor, 0
        end, expected_ns = self.timing.range(costs, processor, start, end, chosen.holds)
        if expected_ns is None:
            raise self._wrong(chosen, f"whose ops {start}..{end} cannot run on {processor!r}")
        return job, variant, start, end, processor, expected_ns

    def _ready(self, chosen: Assignment) -> Job:
        job = self.jobs.in_flight.get(chosen.job)
        if job is None or job.state is not READY:
            raise self._wrong(chosen, "which could not run: choose from view.ready")
        if job.bound not in ("", chosen.processor):
            raise self._wrong(chosen, f"which cannot run on {chosen.processor!r} now")
        return job

    def _wrong(self, chosen: Assignment, why: str) -> CoordinationError:
        return CoordinationError(f"chose job {chosen.job}, {why}")

    def _run(
        self, job: Job, end_op: int, processor: str, reason: str, now_ns: int, out: list[Action]
    ) -> None:
        """Start a range that needs no check."""
        _, expected_ns = self.timing.range(job.stage_costs, processor, job.next_op, end_op)
        self._start(
            (job, "", job.next_op, end_op, processor, expected_ns or 0), reason, now_ns, out
        )

    def _start(self, start: _Start, reason: str, now_ns: int, out: list[Action]) -> None:
        job, variant, next_op, end_op, processor, expected_ns = start
        if variant:
            job.vary(variant)
        if end_op == next_op:  # it has to wait for a gap, or its next op is a fallback op
            if processor == GPU and job.stage_costs.fallback[next_op]:
                self.jobs.ready(job, now_ns, out)
            return
        job.happened(RunChunk)
        until_ns = self.timing.until_ns(processor)
        job.chunk = Chunk(end_op, now_ns, now_ns + expected_ns, until_ns > 0)
        self.jobs.running[processor].append(job)
        job.moved_to(processor)
        goes_on = job.chunk_end_op > 0
        job.chunks += not goes_on
        job.owner.last_reason = reason
        if processor == self.timing.renderer:
            self._gap.chunk_started(now_ns, goes_on)
            if self.timing.holds_fallback and not goes_on:
                job.chunk_end_op = self.timing.held_to(job.stage_costs, next_op)
        out.append(
            RunChunk(
                job.id, job.dnn, job.stage, job.task, processor, next_op, end_op,
                expected_ns, reason, until_ns,
            )
        )  # fmt: skip

    def _launch_of(self, choice: Choice, idle: Sequence[str], now_ns: int) -> _Launch | None:
        """What runs together, on one processor. None where it has to wait for a gap that has room
        for it, if one ever has."""
        chosen = [(each, self._ready(each)) for each in choice.assignments]
        processor = choice.assignments[0].processor
        stages, lanes = together.stages_of(chosen), self.jobs.capacity.get(processor, 0)
        together.check_lanes(processor, lanes, stages)
        jobs = {job.id: job for _, job in chosen}
        for each, _ in chosen:
            if each.processor != processor or idle.count(processor) < lanes:
                raise self._wrong(each, f"together with others: all need {processor!r}, idle")
        longest_ns = together.longest_ns(processor, stages, jobs)
        expected_ns = max(index(choice.expected_ns), 0) or longest_ns
        gap = self._gap
        if self.timing.until_ns(processor):
            left_ns, fresh = gap.room(now_ns)
            if expected_ns > left_ns and not (fresh and expected_ns > gap.usual_ns):
                return None
        return RunTogether(processor, stages, expected_ns, choice.reason), jobs

    def _start_together(
        self,
        launch: _Launch,
        reason: str,
        now_ns: int,
        out: list[Action],
    ) -> None:
        action, jobs = launch
        end_ns = now_ns + action.expected_ns
        for id, _, end_op in action.parts:
            job = jobs[id]
            job.happened(RunTogether)
            job.chunk = Chunk(end_op, now_ns, end_ns, together=True)
            self.jobs.running[action.processor].append(job)
            job.moved_to(action.processor)
            job.chunks += 1
            job.owner.last_reason = reason
        self._held.add(action.processor)
        if action.processor == self.timing.renderer:
            self._gap.chunk_started(now_ns)
        out.append(action)


def _acts(found: _Checked | None) -> bool:
    """Whether a choice starts anything, and does not wait for a gap with all of it."""
    if found is None:
        return False
    _, starts, launch = found
    return launch is not None or any(end > start for _, _, start, end, _, _ in starts)
