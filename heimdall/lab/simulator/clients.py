"""Who wants jobs in a simulation: the frames that a DNN looks at, or requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from heimdall.lab.bench.traffic import Arrival
from heimdall.lab.simulator.jobs import FramesAndJobs
from heimdall.lab.simulator.machine import SimulatedDnn
from heimdall.runtime.telemetry.jobs import JobCounts, Outcome
from heimdall.vocabulary.events import (
    NO_JOB,
    Drop,
    Finish,
    InferenceRequested,
    InputReady,
    Prepare,
    RunChunk,
)
from heimdall.vocabulary.plans import DnnPlan

WAITED = "waited when it ended"


class Frames:
    """The frames that one DNN looks at: each is made ready in the pool, and what comes out is
    decoded there."""

    def __init__(self, run: FramesAndJobs, dnn: SimulatedDnn) -> None:
        self._run, self._dnn = run, dnn
        self._requested_ns: dict[int, int] = {}  # by job
        self._looked_ns: int | None = None  # when it took its last picture

    def prepare(self, action: Prepare) -> None:
        run, dnn = self._run, self._dnn
        run.figures.dnns[dnn.name].begun_anew += action.anew != ""
        if action.stage == 0:
            self._requested_ns[action.job] = run.now_ns
        work_ns = run.one_of(dnn.prepare_ns[action.stage])
        end_ns = run.pool.end_ns(run.handed_over(), work_ns)
        run.span("pool-0", f"{dnn.name} preprocess", run.now_ns, end_ns)
        difference = self._luminance_difference(action.stage)
        frame = run.frame if action.stage == 0 else None
        tasks = run.tasks(dnn, action.stage)
        run.report(end_ns, InputReady(action.job, tasks, difference, frame))

    def _luminance_difference(self, stage: int) -> float:
        watched = self._dnn.watched
        if watched is None:
            return self._run.one_of(self._dnn.luminance_difference)
        if stage > 0:  # the same picture
            return 0.0
        before_ns, self._looked_ns = self._looked_ns, self._run.now_ns
        return watched.difference(before_ns, self._run.now_ns)

    def runs(self, action: RunChunk) -> None:
        self._run.figures.chose(action)

    def finish(self, action: Finish) -> None:
        run, figures = self._run, self._run.figures.dnns[self._dnn.name]
        figures.finished(action)
        requested_ns = self._requested_ns.pop(action.job)
        end_ns = run.pool.end_ns(run.handed_over(), self._dnn.decode_ns)
        run.span("pool-0", f"{self._dnn.name} decode", run.now_ns, end_ns)
        run.report(end_ns, lambda: figures.shown(requested_ns, run.now_ns))

    def drop(self, action: Drop) -> None:
        self._requested_ns.pop(action.job, None)
        self._run.figures.dnns[self._dnn.name].dropped += 1


@dataclass(frozen=True)
class SimulatedModel:
    """A model that requests come for: its plan (``queued``; ``constraint_ns`` is their SLO), and
    when each comes, in ns from 0. ``slo_ns``: of one that comes then, where requests differ."""

    plan: DnnPlan
    arrivals_ns: Iterable[int]
    slo_ns: Callable[[int], int | None] = lambda at_ns: None

    @property
    def network(self) -> SimulatedDnn:
        """All that is known of it: tensors that come ready, and go as they are."""
        return SimulatedDnn(self.plan, ((0,),), 0)


@dataclass(frozen=True, slots=True)
class Answered(Outcome):
    """What became of the ``request`` of that number."""

    request: int = -1


# Of an answer, now in ns, what comes of it.
Follow = Callable[[Answered, int], Sequence[Arrival]]


class Host(Protocol):
    """A run in which requests come."""

    now_ns: int

    def later(self, at_ns: int, event: InferenceRequested | InputReady) -> None:
        """It happens then."""


class Requests:
    """All requests of a run. ``answered``: in the order of answers; ``began_ns``: when the first
    may come."""

    def __init__(
        self,
        run: Host,
        models: Sequence[SimulatedModel],
        follow: Follow | None = None,
    ) -> None:
        """``follow``: the requests that come of an answer, if any: models, and when. All times are
        counted from ``began_ns``."""
        self.answered: list[Answered] = []
        self._run, self._models, self._follow, self.began_ns = run, models, follow, 0
        self._plans: Mapping[str, DnnPlan] = {each.plan.name: each.plan for each in models}
        self._submitted: dict[int, tuple[str, int, int]] = {}  # by request: model, when, SLO
        self._jobs: dict[int, int] = {}  # by job: its request
        self._progress = JobCounts()

    def begin(self, now_ns: int) -> None:
        """From now on they come."""
        self.began_ns = now_ns
        arrivals = sorted(
            (at_ns, index) for index, each in enumerate(self._models) for at_ns in each.arrivals_ns
        )
        for at_ns, index in arrivals:
            model = self._models[index]
            self._ask(Arrival(model.plan.name, at_ns, model.slo_ns(at_ns)))

    @property
    def unanswered(self) -> int:
        """How many have come, or will, and have no answer."""
        return len(self._submitted) - len(self.answered)

    def end(self) -> None:
        """What is not answered by now has waited to the end."""
        answered = {each.request for each in self.answered}
        jobs = {request: job for job, request in self._jobs.items()}
        for request in sorted(self._submitted.keys() - answered):
            model, _, _ = self._submitted[request]
            drop = Drop(jobs.get(request, NO_JOB), model, WAITED, request=request)
            self._answer(drop, request, None, WAITED)

    def _ask(self, asked: Arrival) -> None:
        model, at_ns, slo_ns, lost = asked
        request = len(self._submitted)
        wanted_ns = self._plans[model].constraint_ns if slo_ns is None else slo_ns
        self._submitted[request] = model, at_ns, wanted_ns
        if lost:
            self.answered.append(Answered(model, at_ns, None, wanted_ns, lost, request=request))
            return
        event = InferenceRequested(model, request, slo_ns)
        self._run.later(self.began_ns + at_ns, event)

    def prepare(self, action: Prepare) -> None:
        assert action.request is not None
        self._jobs[action.job] = action.request
        self._run.later(self._run.now_ns, InputReady(action.job))

    def runs(self, action: RunChunk) -> None:
        self._progress.acted(action)

    def finish(self, action: Finish) -> None:
        now_ns = self._run.now_ns - self.began_ns
        self._answer(action, self._jobs.pop(action.job), now_ns, "")

    def drop(self, action: Drop) -> None:
        self._jobs.pop(action.job, None)
        if action.request is not None:
            self._answer(action, action.request, None, action.reason)

    def expired(self, request: int) -> bool:
        """Whether its deadline has passed by now, and its model wants it no more then."""
        plan = self._plans[self._submitted[request][0]]
        return plan.expires and self._run.now_ns >= self.deadline_ns(request)

    def deadline_ns(self, request: int) -> int:
        """When it is to be answered, in time of the run."""
        _, submitted_ns, slo_ns = self._submitted[request]
        return self.began_ns + submitted_ns + slo_ns

    def done(self, request: int, processor: str) -> None:
        """A thread has run it, without a coordinator."""
        model, submitted_ns, _ = self._submitted[request]
        now_ns = self._run.now_ns - self.began_ns
        finish = Finish(NO_JOB, model, processor, now_ns - submitted_ns, False, 1)
        self._answer(finish, request, now_ns, "")

    def given_up(self, request: int, reason: str) -> None:
        """A thread will not run it."""
        model, _, _ = self._submitted[request]
        self._answer(Drop(NO_JOB, model, reason, request=request), request, None, reason)

    def _answer(
        self, action: Finish | Drop, request: int, finished_ns: int | None, reason: str
    ) -> None:
        model, submitted_ns, slo_ns = self._submitted[request]
        taken = self._progress.of(action, self._plans[model])
        answered = Answered(model, submitted_ns, finished_ns, slo_ns, reason, *taken, request)
        self.answered.append(answered)
        now_ns = self._run.now_ns - self.began_ns
        for asked in self._follow(answered, now_ns) if self._follow else ():
            self._ask(asked)
