"""Jobs in flight: moved along their ops, tasks and stages, and ended. When they begin is what their
DNN's client says."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import inf
from types import MappingProxyType

from heimdall.coordinator.chunking import Chunking
from heimdall.coordinator.gap import Gap
from heimdall.coordinator.job import Away, Dnn, Job
from heimdall.coordinator.placement import Placement
from heimdall.coordinator.states import (
    DROPPED,
    FINISHED,
    READY,
    RUNNING,
    TABLE,
    CoordinationError,
    PutBack,
    State,
    illegal,
)
from heimdall.vocabulary.events import (
    Action,
    ChunkFinished,
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

_REMEMBERED = 256  # ended jobs of which it is known how
_EWMA = 0.1


class Client(ABC):
    """What asks for jobs of a DNN. ``newest``: they are about the newest frame, so one that is
    lost, or gets old, is not worth as much as the next one."""

    newest: bool

    def __init__(self, dnn: Dnn, jobs: Jobs) -> None:
        self._dnn, self._jobs = dnn, jobs

    @abstractmethod
    def ask(self, event: InferenceRequested, now_ns: int, out: list[Action]) -> None:
        """An inference is asked for."""

    @abstractmethod
    def since_ns(self, job: Job, now_ns: int) -> int:
        """When the time began in which a job, whose first input is ready, has to end."""

    @abstractmethod
    def failed(self, job: Job, error: str, now_ns: int, out: list[Action]) -> None:
        """A job failed, which ends it."""

    def arrived(self, frame: int, now_ns: int, out: list[Action]) -> None:  # noqa: B027
        """There is a new frame."""

    def took(self, frame: int | None) -> None:  # noqa: B027
        """The job in flight is about that frame."""

    def begin(self, now_ns: int, out: list[Action]) -> None:  # noqa: B027 - not all do by themselves
        """Let the next job begin, if one is due."""

    def admitted(self, job: Job, now_ns: int) -> None:  # noqa: B027
        """One has begun."""

    def again(self, event: type) -> bool:
        """Whether what was asked of a job that ``event`` ends is asked for anew."""
        return False

    def ended(self, now_ns: int, out: list[Action]) -> None:  # noqa: B027
        """A job has ended."""


class Jobs:
    """``clients``: by DNN, what says when its jobs begin; ``in_flight``: jobs by number, oldest
    first; ``changed``: those that became ready or ended since the queue was last looked at, where
    it is not in that order; ``running``: those on each processor, of which there are ``capacity``
    at most; ``handoff_ns``: what a chunk there takes beside its own time, from being handed out to
    being told of, smoothed; ``resting``: when the next job of a DNN may start, while its rate cap
    or a failure delays it. ``most_pending``: how many requests a DNN with one job at a time
    remembers; ``repeats``: see ``Coordinator``; ``most_waiting``: how many requests with inputs of
    their own may wait for their first chunk."""

    def __init__(
        self,
        dnns: Mapping[str, Dnn],
        placement: Placement,
        chunking: Chunking,
        gap: Gap,
        interval_ns: int,
        processors: Sequence[Processor],
        most_pending: int = 1,
        most_waiting: float = inf,
        repeats: bool = True,
    ) -> None:
        self.clients: dict[str, Client] = {}
        self.in_flight: dict[int, Job] = {}
        self.changed: list[Job] | None = None
        self.running: dict[str, list[Job]] = {each.id: [] for each in processors}
        self.capacity = {each.id: each.lanes for each in processors}
        self._handoff_ns = dict.fromkeys(self.running, 0.0)
        self.handoff_ns: Mapping[str, float] = MappingProxyType(self._handoff_ns)
        self.most_pending, self.most_waiting = most_pending, most_waiting
        self.repeats = repeats
        self.resting: dict[str, int] = {}
        self.rest_until_ns: float = inf  # none may start before
        self.started = False
        self.serve = False  # whether there are models that requests come for
        self.expire = False  # ... and of some that have waited too long
        self.fall_back = False  # whether a network has ops that the GPU's engine lacks
        self.placement, self.interval_ns = placement, interval_ns
        self._dnns, self._chunking, self._gap = dnns, chunking, gap
        self._ended: dict[int, tuple[str, State]] = {}
        self.put_back: set[tuple[int, str]] = set()  # jobs, and where they were lost: until told
        self._next = 0

    def join(self, dnn: Dnn, client: Client) -> None:
        """A DNN whose jobs may begin, when ``client`` says."""
        self.fall_back |= any(any(stage.fallback) for stage in dnn.plan.stages)
        self.clients[dnn.name] = client
        self.serve |= not client.newest
        self.expire |= dnn.plan.expires

    def knows(self, dnn: Dnn) -> bool:
        """Whether a DNN has not been removed."""
        return dnn.name in self._dnns

    def reconfigure(
        self, chunking: Chunking, interval_ns: int, now_ns: int, out: list[Action]
    ) -> None:
        """Estimate what is left for another chunk mode or frame rate. Chunks that were under way
        end with their partition, and jobs are bound as the policy has it that decides from now
        on."""
        self._chunking, self.interval_ns = chunking, interval_ns
        for job in list(self.in_flight.values()):
            job.chunk_end_op = 0
            if job.state is READY:
                self.ready(job, now_ns, out)

    def find(self, job_id: int, event: type) -> Job | None:
        """The job in flight that ``event`` may happen to; None for a late event of an ended job."""
        job = self.in_flight.get(job_id)
        if job is not None:
            if event not in TABLE[job.state]:
                raise illegal(job.id, job.dnn, job.state, event)
            return job
        if not 0 <= job_id < self._next:
            raise CoordinationError(
                f"job {job_id} is not known: {event.__name__} cannot happen to it"
            )
        if job_id not in self._ended:
            return None  # it ended long ago: some functions of an app take seconds
        name, state = self._ended[job_id]
        if event not in TABLE[state]:
            raise illegal(job_id, name, state, event)
        if event is JobFailed and state is FINISHED and name in self._dnns:
            self._dnns[name].failures += 1  # its result could not be decoded
            self._ended[job_id] = name, DROPPED  # which is said once
        return None

    def admit(
        self, dnn: Dnn, now_ns: int, out: list[Action], event: InferenceRequested | None = None
    ) -> Job:
        """A job begins."""
        plan = dnn.plan
        job = Job(
            id=self._next,
            dnn=dnn.name,
            priority=plan.priority,
            utility=plan.utility,
            constraint_ns=(event and event.slo_ns) or plan.constraint_ns,
            arrival_ns=now_ns,
            owner=dnn,
            stage_costs=dnn.costs[0],
            prepare_ns=now_ns,
            request=event.request if event else None,
        )
        self._next += 1
        self.in_flight[job.id] = job
        self.clients[dnn.name].admitted(job, now_ns)
        out.append(Prepare(job.id, job.dnn, 0, job.request))
        return job

    def rest(self, dnn: Dnn, until_ns: int) -> None:
        """The next job of a DNN starts then at the earliest."""
        self.resting[dnn.name] = until_ns
        self.rest_until_ns = min(self.rest_until_ns, until_ns)

    def adjusted(self, dnn: Dnn, now_ns: int, out: list[Action]) -> None:
        """A DNN is wanted otherwise: its job in flight is as urgent, too, and if it rests for its
        rate cap, it rests for the one that holds now."""
        job, plan = dnn.job, dnn.plan
        if job is not None:
            job.beta *= plan.utility.beta / (job.utility.beta or 1.0)
            job.priority, job.utility = plan.priority, plan.utility
            job.constraint_ns = plan.constraint_ns
            if job.enqueued_ns is not None:
                job.deadline_ns = job.enqueued_ns + plan.constraint_ns
                job.show()
        if not dnn.failures_in_row:
            self.resting.pop(dnn.name, None)
            self.clients[dnn.name].begin(now_ns, out)

    def on_gpu(self) -> bool:
        """Whether a chunk has the GPU, or will go on there when its fallback ops have run."""
        if self.running.get(GPU):
            return True
        return self.going_on()

    def going_on(self) -> bool:
        """Whether a chunk is away for its fallback ops, or waits for the GPU to go on."""
        return any(job.chunk_end_op for job in self.in_flight.values())

    def resume(self, now_ns: int, out: list[Action]) -> None:
        """Admit jobs of the DNNs that have rested."""
        for name, dnn in self._dnns.items():
            if name in self.resting and now_ns >= self.resting[name]:
                del self.resting[name]
                self.clients[dnn.name].begin(now_ns, out)
        self.rest_until_ns = min(self.resting.values(), default=inf)

    def has_room(self, processor: str) -> bool:
        """Whether a processor can run one more job."""
        return len(self.running[processor]) < self.capacity[processor]

    def handed_back(self, processor: str, begin_ns: int, elapsed_ns: int, now_ns: int) -> None:
        """A chunk that took ``elapsed_ns`` there has ended, and one hears of it now."""
        seen_ns, known_ns = now_ns - begin_ns - elapsed_ns, self._handoff_ns[processor]
        self._handoff_ns[processor] = known_ns + _EWMA * (
            (seen_ns if seen_ns > 0 else 0) - known_ns
        )

    def ready(self, job: Job, now_ns: int, out: list[Action]) -> None:
        """A job that is ready goes on: to the pool for fallback ops, else it waits for its
        processor. Its estimates of what is left are renewed, as policies see them."""
        if self.changed is not None:
            self.changed.append(job)
        placement = self.placement
        if job.bound in placement.lost or (job.bound != "") is not placement.binds:
            job.bound, job.chunk_end_op = placement.bound(job.owner), 0
            if job.bound:
                job.processor = job.owner.processor
            if job.bound not in (GPU, ""):  # others never cut
                job.begin()
        if job.bound not in (GPU, ""):
            later = job.owner.costs[job.stage :]
            job.remaining_ns = sum(costs.off_ns(job.bound) for costs in later)
            job.other_ns, job.gaps = 0, max(1, -(-job.remaining_ns // self.interval_ns))
            job.show()
            return
        if job.stage_costs.fallback[job.next_op]:
            self._fall_back(job, now_ns, out)
        job.remaining_ns, job.other_ns, chunks = job.left()
        one_by_one_ns = job.remaining_ns + job.other_ns
        job.gaps = self._chunking.gaps(chunks, one_by_one_ns, self._gap.usual_ns)
        job.show()

    def _fall_back(self, job: Job, now_ns: int, out: list[Action]) -> None:
        """The pool runs the fallback ops that are next."""
        job.happened(RunFallback)
        costs, next_op = job.stage_costs, job.next_op
        end_op = costs.run_end[next_op]
        job.away = Away(now_ns, now_ns + costs.fallback_ns(next_op, end_op))
        out.append(RunFallback(job.id, job.dnn, job.stage, job.task, next_op, end_op))

    def progress(self, job: Job, end_op: int, now_ns: int, out: list[Action]) -> None:
        """Ops up to ``end_op`` are done: on with the task, the next one, the next stage, or end."""
        job.last_op_ns = now_ns
        if end_op >= job.chunk_end_op:  # fallback ops may go on behind the end of a chunk
            job.chunk_end_op = 0
        if job.passed(end_op):
            if job.task + 1 < job.tasks:
                job.task += 1
                job.begin()
            elif job.stage + 1 < len(job.owner.costs):
                job.happened(Prepare)
                job.begin_stage(job.stage + 1, now_ns)
                out.append(Prepare(job.id, job.dnn, job.stage))
                return
            else:
                self.finish(job, now_ns, out)
                return
        self.ready(job, now_ns, out)

    def finish(self, job: Job, now_ns: int, out: list[Action]) -> None:
        """The last op of the last stage has run."""
        job.happened(Finish)
        latency_ns = job.last_op_ns - (job.enqueued_ns or 0)
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
        again = self.clients[job.dnn].again(event)
        out.append(Drop(job.id, job.dnn, reason, again, job.request))
        self._end(job, now_ns, out)

    def begin_anew(self, job: Job, why: str, now_ns: int, out: list[Action]) -> None:
        """A job that is ready begins again, on the newest frame. It stays as urgent as it was."""
        job.happened(Prepare)
        job.begin_stage(0, now_ns)
        job.chunk_end_op, job.exit = 0, ""
        out.append(Prepare(job.id, job.dnn, 0, job.request, why))

    def lost(self, processor: str, now_ns: int, out: list[Action]) -> None:
        """A processor is lost, and what it was at with it. A request is one's own, so its job goes
        on where any other runs it, at once or as soon as the DNN has moved there, with the ops that
        were under way to be done again. Others end: the next frame comes."""
        for job in list(self.in_flight.values()):
            newest = self.clients[job.dnn].newest
            here = job.enqueued_ns is not None and job.processor == processor
            if not newest and (why := self.placement.why_nowhere(job.owner)):
                self.drop(job, ProcessorLost, why, now_ns, out)
            elif here and newest and (job.bound or job.state is RUNNING):
                self.drop(job, ProcessorLost, f"{processor} lost", now_ns, out)
            elif here and job.state is RUNNING:
                job.happened(PutBack)
                self.running[processor].remove(job)
                self.put_back.add((job.id, processor))

    def moved(self, dnn: Dnn, now_ns: int, out: list[Action]) -> bool:
        """A DNN is somewhere else: its jobs that have lost their processor go on there. Whether
        there are any."""
        if not self.placement.runs_on(dnn):
            return False
        lost = self.placement.lost
        those = [
            job
            for job in self.in_flight.values()
            if job.owner is dnn and job.state is READY and job.bound in lost
        ]
        for job in those:
            self.ready(job, now_ns, out)
        return bool(those)

    def was_put_back(self, event: ChunkFinished) -> bool:
        """Whether a processor reports what it was at when it was lost, and not what it is at now.
        That is said once, and may be late: the job runs elsewhere, or has ended."""
        if (event.job, event.processor) not in self.put_back:
            return False
        job = self.in_flight.get(event.job)
        if job in self.running[event.processor] and event.start_op == job.next_op:
            return False
        self.put_back.discard((event.job, event.processor))
        return True

    def removed(self, dnn: Dnn, now_ns: int, out: list[Action]) -> None:
        """A DNN is not to be run any more."""
        dnn.pending = 0
        self.resting.pop(dnn.name, None)
        self.drop_all(dnn, DnnRemoved, "removed", now_ns, out)
        del self.clients[dnn.name]

    def drop_all(self, dnn: Dnn, event: type, reason: str, now_ns: int, out: list[Action]) -> None:
        """``drop`` each job of a DNN."""
        for job in [job for job in self.in_flight.values() if job.owner is dnn]:
            self.drop(job, event, reason, now_ns, out)

    def _end(self, job: Job, now_ns: int, out: list[Action]) -> None:
        del self.in_flight[job.id]
        self._ended[job.id] = (job.dnn, job.state)
        if len(self._ended) > _REMEMBERED:
            del self._ended[next(iter(self._ended))]
        if self.changed is not None:
            self.changed.append(job)
        self.clients[job.dnn].ended(now_ns, out)
