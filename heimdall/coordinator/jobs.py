"""Jobs in flight: admitted one a DNN, moved along their ops, tasks and stages, and ended."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from heimdall.coordinator.chunking import Chunking
from heimdall.coordinator.dnn import Dnn
from heimdall.coordinator.gap import Gap
from heimdall.coordinator.job import Job
from heimdall.coordinator.placement import Placement
from heimdall.coordinator.states import FINISHED, TABLE, CoordinationError, State, illegal
from heimdall.vocabulary.events import (
    Action,
    DnnBuilt,
    DnnRemoved,
    Drop,
    Finish,
    JobFailed,
    Prepare,
    ProcessorLost,
    RunFallback,
)
from heimdall.vocabulary.processors import CPU, GPU

_REMEMBERED = 256  # ended jobs whose late events are still understood
_NOT_TO_BLAME = frozenset({ProcessorLost, DnnBuilt})  # a request that these end is run anew


class Jobs:
    """``in_flight``: jobs by number, oldest first; ``running``: those on each processor, of which
    there are ``capacity`` at most; ``resting``: when the next job of a DNN may start, while its
    rate cap or a failure delays it."""

    def __init__(
        self,
        dnns: Mapping[str, Dnn],
        placement: Placement,
        chunking: Chunking,
        gap: Gap,
        interval_ns: int,
        cpu_workers: int = 1,
    ) -> None:
        self.in_flight: dict[int, Job] = {}
        self.running: dict[str, list[Job]] = {GPU: [], CPU: []}
        self.capacity = {GPU: 1, CPU: cpu_workers}
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

    def _refuse(self, dnn: Dnn, now_ns: int, out: list[Action]) -> None:
        """Drop what is asked of a DNN that runs nowhere: whoever waits for it must hear of it."""
        requests, dnn.pending = dnn.pending, 0
        for _ in range(requests):
            job = self._admit(dnn, now_ns, out)
            self.drop(job, JobFailed, "runs on no processor", now_ns, out)

    def _admit(self, dnn: Dnn, now_ns: int, out: list[Action]) -> Job:
        plan = dnn.plan
        job = Job(
            id=self._next,
            dnn=dnn.name,
            priority=plan.priority,
            utility=plan.utility,
            constraint_ns=plan.constraint_ns,
            costs=dnn.costs,
            arrival_ns=now_ns,
            owner=dnn,
            stage_costs=dnn.costs[0],
            prepare_ns=now_ns,
        )
        self._next += 1
        dnn.pending = max(dnn.pending - 1, 0)
        dnn.job, dnn.last_prepare_ns = job, now_ns
        self.resting.pop(dnn.name, None)
        self.in_flight[job.id] = job
        out.append(Prepare(job.id, job.dnn, 0))
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
        if self.running[GPU]:
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

    def ready(self, job: Job, now_ns: int, out: list[Action]) -> None:
        """A job that is ready goes on: to the pool for fallback ops, else it waits for its
        processor. Its estimates of what is left are renewed, as policies see them."""
        costs = job.stage_costs
        if job.processor != GPU:
            job.remaining_ns = sum(later.cpu_ns() for later in job.owner.costs[job.stage :])
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
        job.next_op, job.last_op_ns = end_op, now_ns
        if end_op == job.chunk_end_op:
            job.chunk_end_op = 0
        if end_op == job.stage_costs.ops:
            if job.task + 1 < job.tasks:
                job.task, job.next_op = job.task + 1, 0
            elif job.stage + 1 < len(job.owner.costs):
                job.happened(Prepare)
                job.stage, job.task, job.tasks, job.next_op = job.stage + 1, 0, 1, 0
                job.stage_costs = job.owner.costs[job.stage]
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
        out.append(Finish(job.id, job.dnn, job.processor, latency_ns, missed, job.chunks, stages))
        self._end(job, now_ns, out)

    def drop(self, job: Job, event: type, reason: str, now_ns: int, out: list[Action]) -> None:
        """The job ends without a result: ``event`` is JobFailed, ProcessorLost, DnnRemoved or
        DnnBuilt."""
        job.happened(event)
        if job in self.running[job.processor]:
            self.running[job.processor].remove(job)
        again = event in _NOT_TO_BLAME
        if again and not job.owner.plan.continuous:
            job.owner.pending = max(job.owner.pending, 1)
        out.append(Drop(job.id, job.dnn, reason, again))
        self._end(job, now_ns, out)

    def removed(self, dnn: Dnn, now_ns: int, out: list[Action]) -> None:
        """A DNN is not to be run any more."""
        dnn.pending = 0
        self.resting.pop(dnn.name, None)
        self._drop_job_of(dnn, DnnRemoved, "removed", now_ns, out)

    def rebuilt(self, dnn: Dnn, now_ns: int, out: list[Action]) -> None:
        """A DNN goes by another plan: so does its job, from the beginning and on a newer frame.
        The one it had may wait, or compute, for seconds where nothing was built yet."""
        self._drop_job_of(dnn, DnnBuilt, "built for the GPU", now_ns, out)

    def _drop_job_of(
        self, dnn: Dnn, event: type, reason: str, now_ns: int, out: list[Action]
    ) -> None:
        if dnn.job is not None:
            self.drop(self.in_flight[dnn.job.id], event, reason, now_ns, out)

    def _end(self, job: Job, now_ns: int, out: list[Action]) -> None:
        del self.in_flight[job.id]
        self._ended[job.id] = (job.dnn, job.state)
        if len(self._ended) > _REMEMBERED:
            del self._ended[next(iter(self._ended))]
        job.owner.job = None
        if job.dnn in self._dnns:
            self.begin(job.owner, now_ns, out)
