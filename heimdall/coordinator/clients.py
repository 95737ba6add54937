"""Who wants a DNN's inferences: when a job of it begins, and what becomes of one that fails."""

from __future__ import annotations

from heimdall.coordinator.job import MAX_FAILED_RUNS, Dnn, Job
from heimdall.coordinator.jobs import Client, Jobs
from heimdall.coordinator.states import FALLBACK, RUNNING
from heimdall.vocabulary.events import (
    NO_JOB,
    Action,
    DnnBuilt,
    Drop,
    InferenceRequested,
    JobFailed,
    ProcessorLost,
)

_NOT_TO_BLAME = frozenset({ProcessorLost, DnnBuilt})  # what these end is asked for anew


def join(dnn: Dnn, jobs: Jobs) -> None:
    """Jobs of a DNN may begin: by requests with inputs of their own, or by frames."""
    jobs.join(dnn, (Requests if dnn.plan.queued else FrameSource)(dnn, jobs))


class FrameSource(Client):
    """An app's frames: one job at a time, on the newest. Where the DNN is continuous, each that it
    has not seen; else when it is asked for. ``repeats``: a continuous one runs back to back, on the
    same frame again where there is no other."""

    newest = True
    _arrived: int | None = None  # the newest frame's number
    _seen: int | None = None  # that of the newest job; None: it was about another, or gave nothing

    def ask(self, event: InferenceRequested, now_ns: int, out: list[Action]) -> None:
        if not self._dnn.plan.continuous:
            self._dnn.pending = min(self._dnn.pending + 1, self._jobs.most_pending)
        elif event.replaces:  # the same frame, but with other options
            self._seen = None
        self.begin(now_ns, out)

    def arrived(self, frame: int, now_ns: int, out: list[Action]) -> None:
        self._arrived = frame
        self.begin(now_ns, out)

    def took(self, frame: int | None) -> None:
        self._seen = frame

    def since_ns(self, job: Job, now_ns: int) -> int:
        return now_ns

    def begin(self, now_ns: int, out: list[Action]) -> None:
        """Now, or when its rate cap (or a failure) allows."""
        dnn, jobs = self._dnn, self._jobs
        if dnn.job is not None:
            return
        if not dnn.pending:
            fresh = jobs.repeats or self._arrived != self._seen
            if not (fresh and dnn.plan.continuous and jobs.started):
                return
        if not jobs.placement.runs_on(dnn):
            if dnn.pending and jobs.placement.runs_nowhere(dnn):
                self._refuse(now_ns, out)
            return
        due_ns = jobs.resting.get(dnn.name, 0)
        if dnn.last_prepare_ns is not None:
            due_ns = max(due_ns, dnn.last_prepare_ns + dnn.plan.min_interval_ns)
        if due_ns > now_ns:
            jobs.rest(dnn, due_ns)
            return
        jobs.admit(dnn, now_ns, out)

    def _refuse(self, now_ns: int, out: list[Action]) -> None:
        """Drop what is asked of a DNN that runs nowhere: clients that wait must hear of it."""
        requests, self._dnn.pending = self._dnn.pending, 0
        for _ in range(requests):
            job = self._jobs.admit(self._dnn, now_ns, out)
            self._jobs.drop(job, JobFailed, "runs on no processor", now_ns, out)

    def admitted(self, job: Job, now_ns: int) -> None:
        dnn = self._dnn
        dnn.pending = max(dnn.pending - 1, 0)
        dnn.job, dnn.last_prepare_ns = job, now_ns
        self._jobs.resting.pop(dnn.name, None)

    def failed(self, job: Job, error: str, now_ns: int, out: list[Action]) -> None:
        dnn, ran = self._dnn, job.state in (RUNNING, FALLBACK)
        self._seen = None
        self._jobs.rest(dnn, dnn.failed(now_ns, self._jobs.interval_ns, ran=ran))
        self._jobs.drop(job, JobFailed, error, now_ns, out)
        if dnn.failed_runs == MAX_FAILED_RUNS:
            dnn.failed_runs = 0
            self._jobs.placement.unfit(dnn, job.processor, now_ns, out)

    def again(self, event: type) -> bool:
        again = event in _NOT_TO_BLAME
        self._seen = None if again else self._seen
        if again and not self._dnn.plan.continuous:
            self._dnn.pending = max(self._dnn.pending, 1)
        return again

    def ended(self, now_ns: int, out: list[Action]) -> None:
        self._dnn.job = None
        if self._jobs.knows(self._dnn):
            self.begin(now_ns, out)


class Requests(Client):
    """Requests with inputs of their own: each is a job, whose sender waits for it."""

    newest = False

    def ask(self, event: InferenceRequested, now_ns: int, out: list[Action]) -> None:
        """Admit it, or refuse it: too many wait, or nothing can run it."""
        dnn, jobs = self._dnn, self._jobs
        waiting = sum(job.owner is dnn and not job.chunks for job in jobs.in_flight.values())
        if waiting >= jobs.most_waiting:
            why = f"{waiting} requests of {dnn.name} wait already"
        elif why := jobs.placement.why_nowhere(dnn):
            pass
        else:
            jobs.admit(dnn, now_ns, out, event)
            return
        out.append(Drop(NO_JOB, dnn.name, why, request=event.request))

    def since_ns(self, job: Job, now_ns: int) -> int:
        return job.arrival_ns

    def failed(self, job: Job, error: str, now_ns: int, out: list[Action]) -> None:
        self._dnn.failures += 1
        self._jobs.drop(job, JobFailed, error, now_ns, out)
