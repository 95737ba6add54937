"""Jobs in flight: admitted one a DNN, moved along their ops, tasks and stages, and ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from heimdall.coordinator.chunking import Chunking
from heimdall.coordinator.dnn import Dnn
from heimdall.coordinator.gap import Gap
from heimdall.coordinator.job import Job
from heimdall.coordinator.placement import Placement
from heimdall.coordinator.states import FINISHED, READY, TABLE, CoordinationError, State, illegal
from heimdall.vocabulary.events import (
    Action,
    DnnBuilt,
    DnnRemoved,
    Drop,
    Finish,
    InferenceRequested,
    JobFailed,
    Prepare,
    ProcessorLost,
    RunFallback,
)
from heimdall.vocabulary.processors import GPU, Processor

NO_JOB = -1  # in Drop: a request was refused before it became one
_REMEMBERED = 256  # ended jobs whose late events are still understood
_EWMA = 0.1
_NOT_TO_BLAME = frozenset({ProcessorLost, DnnBuilt})  # a request that these end is run anew


class Jobs:
    """``in_flight``: jobs by number, oldest first; ``changed``: those that became ready or ended
    since the one queue was last looked at, where there is one; ``running``: those on each
    processor, of which there are ``capacity`` at most; ``handoff_ns``: what a chunk there takes
    beside its own time, from being handed out to being told of, smoothed; ``resting``: when the
    next job of a DNN may start, while its rate cap or a failure delays it."""

    def __init__(
        self,
        dnns: Mapping[str, Dnn],
        placement: Placement,
        chunking: Chunking,
        gap: Gap,
        interval_ns: int,
        processors: Sequence[Processor],
        limit: float = inf,
    ) -> None:
        """``limit``: how many requests of a queued DNN may wait for their first chunk."""
        self.in_flight: dict[int, Job] = {}
        self.changed: list[Job] = []
        self.running: dict[str, list[Job]] = {each.id: [] for each in processors}
        self.capacity = {each.id: each.lanes for each in processors}
        self.handoff_ns = dict.fromkeys(self.running, 0.0)
        self.binds_late = False  # a job's processor is chosen anew for each range of it
        self._limit = limit
        self.resting: dict[str, int] = {}
        self.rest_until_ns: float = inf  # none may start before
        self.started = False
        self._dnns, self._placement = dnns, placement
        self._chunking, self._gap, self._interval_ns = chunking, gap, interval_ns
        self._ended: dict[int, tuple[str, State]] = {}
        self._next = 0

    def reconfigure(self, chunking: Chunking, interval_ns: int) -> None:
        """Estimate what is left for another chunk mode or frame rate."""
        self._chunking, self._interval_ns = chunking, interval_ns

    def find(self, job_id: int, event: type) -> Job | None:
        """The job in flight that ``event`` may happen to; None for a late event of an ended job."""
        job = self.in_flight.get(job_id)
        if job is not None:
            if event not in TABLE[job.state]:
                raise illegal(job.id, job.dnn, job.state, event)
            return job
        if job_id not in self._ended:
            raise CoordinationError(
                f"job {job_id} is not known: {event.__name__} cannot happen to it"
            )
        name, state = self._ended[job_id]
        if event not in TABLE[state]:
            raise illegal(job_id, name, state, event)
        if event is JobFailed and state is FINISHED and name in self._dnns:
            self._dnns[name].failures += 1  # its result could not be decoded
        return None

    def begin(self, dnn: Dnn, now_ns: int, out: list[Action]) -> None:
        """Admit the next job of a DNN, now or when its rate cap (or a failure) allows."""
        wanted = dnn.pending > 0 or (dnn.plan.continuous and self.started)
        if dnn.job is not None or not wanted:
            return
        if not self._placement.runs_on(dnn):
            if dnn.pending and self._placement.runs_nowhere(dnn):
                self._refuse(dnn, now_ns, out)
            return
        due_ns = self.resting.get(dnn.name, 0)
        if dnn.last_prepare_ns is not None:
            due_ns = max(due_ns, dnn.last_prepare_ns + dnn.plan.min_interval_ns)
        if due_ns > now_ns:
            self.rest(dnn, due_ns)
            return
        self._admit(dnn, now_ns, out)

    def request(self, dnn: Dnn, event: InferenceRequested, now_ns: int, out: list[Action]) -> None:
        """Admit a request of a queued DNN, or refuse it: too many wait, or nothing can run it."""
        waiting = sum(job.owner is dnn and not job.chunks for job in self.in_flight.values())
        if waiting >= self._limit:
            why = f"{waiting} requests of {dnn.name} wait already"
        elif len(self._placement.lost) == len(self.running):
            why = "every processor is lost"
        elif not self.binds_late and self._placement.runs_nowhere(dnn):
            why = "runs on no processor"
        else:
            self._admit(dnn, now_ns, out, event)
            return
        out.append(Drop(NO_JOB, dnn.name, why, request=event.request))

    def _refuse(self, dnn: Dnn, now_ns: int, out: list[Action]) -> None:
        """Drop what is asked of a DNN that runs nowhere: whoever waits for it must hear of it."""
        requests, dnn.pending = dnn.pending, 0
        for _ in range(requests):
            job = self._admit(dnn, now_ns, out)
            self.drop(job, JobFailed, "runs on no processor", now_ns, out)

    def _admit(
        self,
        dnn: Dnn,
        now_ns: int,
        out: list[Action],
        event: InferenceRequested | None = None,
    ) -> Job:
        plan = dnn.plan
        constraint_ns = (event and event.slo_ns) or plan.constraint_ns
        job = Job(
            id=self._next,
            dnn=dnn.name,
            priority=plan.priority,
            utility=plan.utility,
            constraint_ns=constraint_ns,
            costs=dnn.costs,
            arrival_ns=now_ns,
            owner=dnn,
            stage_costs=dnn.costs[0],
            prepare_ns=now_ns,
            request=event.request if event else None,
        )
        self._next += 1
        self.in_flight[job.id] = job
        if not plan.queued:
            dnn.pending = max(dnn.pending - 1, 0)
            dnn.job, dnn.last_prepare_ns = job, now_ns
            self.resting.pop(dnn.name, None)
        out.append(Prepare(job.id, job.dnn, 0, job.request))
        return job

    def rest(self, dnn: Dnn, until_ns: int) -> None:
        """The next job of a DNN starts then at the earliest."""
        self.resting[dnn.name] = until_ns
        self.rest_until_ns = min(self.rest_until_ns, until_ns)

    def adjusted(self, dnn: Dnn, now_ns: int, out: list[Action]) -> None:
        """A DNN that rests for its rate cap rests for the one that holds now."""
        if not dnn.failures_in_row:
            self.resting.pop(dnn.name, None)
            self.begin(dnn, now_ns, out)

    def on_gpu(self) -> bool:
        """Whether a chunk has the GPU, or will go on there when its fallback ops have run."""
        if self.running.get(GPU):
            return True
        return any(job.chunk_end_op for job in self.in_flight.values())

    def resume(self, now_ns: int, out: list[Action]) -> None:
        """Admit jobs of the DNNs that have rested."""
        for name, dnn in self._dnns.items():
            if name in self.resting and now_ns >= self.resting[name]:
                del self.resting[name]
                self.begin(dnn, now_ns, out)
        self.rest_until_ns = min(self.resting.values(), default=inf)

    def has_room(self, processor: str) -> bool:
        """Whether a processor can run one more job."""
        return len(self.running[processor]) < self.capacity[processor]

    def handed_back(self, job: Job, processor: str, elapsed_ns: int, now_ns: int) -> None:
        """A chunk that took ``elapsed_ns`` there has ended, and one hears of it now."""
        seen_ns = max(0, now_ns - job.chunk_begin_ns - elapsed_ns)
        self.handoff_ns[processor] += _EWMA * (seen_ns - self.handoff_ns[processor])

    def ready(self, job: Job, now_ns: int, out: list[Action]) -> None:
        """A job that is ready goes on: to the pool for fallback ops, else it waits for its
        processor. Its estimates of what is left are renewed, as policies see them."""
        costs = job.stage_costs
        if self.binds_late:
            self.changed.append(job)
        elif job.owner.plan.queued and job.processor in self._placement.lost:
            job.processor, job.chunk_end_op = job.owner.processor, 0
            if job.processor != GPU:  # others never cut
                job.begin()
        if job.processor != GPU and not self.binds_late:
            job.remaining_ns = sum(
                later.off_ns(job.processor) for later in job.owner.costs[job.stage :]
            )
            job.other_ns, job.gaps = 0, max(1, -(-job.remaining_ns // self._interval_ns))
            return
        if costs.fallback[job.next_op]:
            job.happened(RunFallback)
            end_op = costs.run_end[job.next_op]
            job.left_ns = now_ns
            job.back_ns = now_ns + costs.fallback_ns(job.next_op, end_op)
            out.append(RunFallback(job.id, job.dnn, job.stage, job.task, job.next_op, end_op))
        job.remaining_ns, job.other_ns, chunks = job.left()
        one_by_one_ns = job.remaining_ns + job.other_ns
        job.gaps = self._chunking.gaps(chunks, one_by_one_ns, self._gap.usual_ns)

    def progress(self, job: Job, end_op: int, now_ns: int, out: list[Action]) -> None:
        """Ops up to ``end_op`` are done: on with the task, the next one, the next stage, or end."""
        job.last_op_ns = now_ns
        if end_op == job.chunk_end_op:
            job.chunk_end_op = 0
        if job.passed(end_op):
            if job.task + 1 < job.tasks:
                job.task += 1
                job.begin()
            elif job.stage + 1 < len(job.owner.costs):
                job.happened(Prepare)
                job.stage, job.task, job.tasks = job.stage + 1, 0, 1
                job.stage_costs = job.owner.costs[job.stage]
                job.begin()
                job.prepare_ns = now_ns
                out.append(Prepare(job.id, job.dnn, job.stage))
                return
            else:
                self.finish(job, now_ns, out)
                return
        self.ready(job, now_ns, out)

    def finish(self, job: Job, now_ns: int, out: list[Action]) -> None:
        job.happened(Finish)
        latency_ns = job.last_op_ns - job.enqueued_ns
        missed = latency_ns > job.constraint_ns
        job.owner.finished(latency_ns, job.processor, missed)
        stages = len(job.owner.costs)
        out.append(
            Finish(
                job.id, job.dnn, job.processor, latency_ns, missed, job.chunks, stages, job.request,
                job.exit,
            )
        )  # fmt: skip
        self._end(job, now_ns, out)

    def drop(self, job: Job, event: type, reason: str, now_ns: int, out: list[Action]) -> None:
        """The job ends without a result: ``event`` is JobFailed, ProcessorLost, DnnRemoved,
        DnnBuilt, or Drop for one that is not worth going on with."""
        job.happened(event)
        if job in self.running.get(job.processor, ()):
            self.running[job.processor].remove(job)
        again = event in _NOT_TO_BLAME and not job.owner.plan.queued
        if again and not job.owner.plan.continuous:
            job.owner.pending = max(job.owner.pending, 1)
        out.append(Drop(job.id, job.dnn, reason, again, job.request))
        self._end(job, now_ns, out)

    def begin_anew(self, job: Job, why: str, now_ns: int, out: list[Action]) -> None:
        """A job that is ready begins again, on the newest frame. It stays as urgent as it was."""
        job.happened(Prepare)
        job.stage, job.task, job.tasks, job.chunk_end_op, job.exit = 0, 0, 1, 0, ""
        job.stage_costs, job.prepare_ns = job.owner.costs[0], now_ns
        job.begin()
        out.append(Prepare(job.id, job.dnn, 0, job.request, why))

    def put_back(self, job: Job) -> None:
        """The processor that a job of a queued DNN runs on is lost: it waits for another, with the
        ops that were under way to be done again."""
        job.happened(InferenceRequested)
        self.running[job.processor].remove(job)

    def keeps(self, dnn: Dnn) -> bool:
        """Whether a job of a DNN outlives its processor. A request is one's own, so that of a
        queued DNN does where any other runs it: at once, or as soon as the DNN has moved there."""
        return self.binds_late or (dnn.plan.queued and not self._placement.runs_nowhere(dnn))

    def moved(self, dnn: Dnn, now_ns: int, out: list[Action]) -> bool:
        """A DNN is somewhere else: its jobs that have lost their processor go on there. Whether
        there are any."""
        if self.binds_late or not dnn.plan.queued or not self._placement.runs_on(dnn):
            return False
        lost = self._placement.lost
        those = [
            job
            for job in self.in_flight.values()
            if job.owner is dnn and job.state is READY and job.processor in lost
        ]
        for job in those:
            self.ready(job, now_ns, out)
        return bool(those)

    def was_put_back(self, job_id: int) -> bool:
        """Whether what a lost processor reports of a job is old: it runs elsewhere by now."""
        job = self.in_flight.get(job_id)
        return job is not None and job.owner.plan.queued

    def removed(self, dnn: Dnn, now_ns: int, out: list[Action]) -> None:
        """A DNN is not to be run any more."""
        dnn.pending = 0
        self.resting.pop(dnn.name, None)
        self._drop_jobs_of(dnn, DnnRemoved, "removed", now_ns, out)

    def rebuilt(self, dnn: Dnn, now_ns: int, out: list[Action]) -> None:
        """A DNN goes by another plan: so does its job, from the beginning and on a newer frame.
        The one it had may wait, or compute, for seconds where nothing was built yet."""
        self._drop_jobs_of(dnn, DnnBuilt, "built for the GPU", now_ns, out)

    def _drop_jobs_of(
        self, dnn: Dnn, event: type, reason: str, now_ns: int, out: list[Action]
    ) -> None:
        for job in [job for job in self.in_flight.values() if job.owner is dnn]:
            self.drop(job, event, reason, now_ns, out)

    def _end(self, job: Job, now_ns: int, out: list[Action]) -> None:
        del self.in_flight[job.id]
        self._ended[job.id] = (job.dnn, job.state)
        if len(self._ended) > _REMEMBERED:
            del self._ended[next(iter(self._ended))]
        if self.binds_late:
            self.changed.append(job)
        if job.owner.plan.queued:
            return
        job.owner.job = None
        if job.dnn in self._dnns:
            self.begin(job.owner, now_ns, out)
