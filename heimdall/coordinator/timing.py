"""How far a job may run on a processor now, and how long that is expected to take.

Where DNNs are bound to a processor, the GPU runs chunks by the chunk mode, all else whole networks
(Heimdall, sections 5.3 and 6.3.2). Where each range chooses its processor, it may be any that the
processor supports, and what was learnt is learnt by processor (Band, section 4.3.2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from heimdall.coordinator.chunking import Chunking
from heimdall.coordinator.gap import Gap
from heimdall.coordinator.job import Job
from heimdall.schedulers.base import GAP_OPENED, JobView
from heimdall.schedulers.expected import StageCosts
from heimdall.vocabulary.processors import CPU, GPU


class Timing(ABC):
    """``renderer``: the processor that draws the frames, or "". Where it does, nothing may start
    while it draws, and what starts has to fit what is left of the gap; ``equal``: without regard to
    rendering."""

    _left_ns = _usual_ns = 0
    _fresh = False

    def __init__(self, gap: Gap, chunking: Chunking, renderer: str, *, equal: bool) -> None:
        self._gap, self._chunking, self._equal = gap, chunking, equal
        self.renderer, self.cuts_anywhere = renderer, chunking.cuts_anywhere
        # A chunk goes on when its fallback ops have run.
        self.holds_fallback = chunking.holds_fallback
        self._holds = chunking.ends_early  # a chunk of a partition ends where that says
        self._early, self._late_ns = chunking.ends_early and not equal, chunking.late_ns

    @property
    def drawing(self) -> bool:
        """True if rendering has its processor for itself."""
        return not (self._equal or self._gap.is_open)

    def held_to(self, costs: StageCosts, start: int) -> int:
        """Where a chunk that holds fallback ops ends, for which it keeps its gap; 0: none does."""
        return 0

    @abstractmethod
    def closed(self, trigger: str, going_on: Callable[[], bool]) -> str:
        """The processor that may start nothing now; "" where there is none. ``going_on``: whether
        a chunk is away on the CPU for its fallback ops."""

    @abstractmethod
    def look(self, now_ns: int) -> None:
        """A decision is about to be made: what follows is said of this moment."""

    @abstractmethod
    def longest(self, job: JobView, processor: str, hold_ns: float = 0) -> int:
        """See ``View.longest``."""

    def fitting(self, jobs: Sequence[JobView], processor: str) -> dict[int, int]:
        """See ``View.fitting``."""
        ends = [(job, self.longest(job, processor)) for job in jobs]
        return {job.id: end for job, end in ends if end > job.next_op}

    @abstractmethod
    def range(
        self, costs: StageCosts, processor: str, start: int, end: int, holds: bool = False
    ) -> tuple[int, int | None]:
        """Where a range that was chosen really ends (``start``: it has to wait for another gap),
        and what it is expected to take; None where it cannot run there. ``holds``: see
        ``Assignment``."""

    @abstractmethod
    def until_ns(self, processor: str) -> int:
        """When a chunk there has to end, at an earlier op if need be; 0: it runs to its end."""

    @abstractmethod
    def fits(self, costs: StageCosts, next_op: int, left_ns: int) -> bool:
        """Whether an op would fit the rest of a gap, behind what runs."""

    @abstractmethod
    def learn(self, job: Job, processor: str, start: int, end: int, elapsed_ns: int) -> float:
        """A range took so long on ``processor``. Returns how many times as long as profiled ranges
        of that network take there by now."""


class Chunks(Timing):
    """Timing of DNNs that are bound to a processor. (The GPU is the one that draws.)"""

    def closed(self, trigger: str, going_on: Callable[[], bool]) -> str:
        if self._equal:
            return ""
        if not self._gap.is_open:
            return GPU
        if not self._chunking.one_a_gap:
            return ""
        has_its_chunk = self._gap.has_its_chunk(trigger == GAP_OPENED)
        return GPU if has_its_chunk and not going_on() else ""

    def look(self, now_ns: int) -> None:
        gap = self._gap
        self._usual_ns = usual_ns = gap.usual_ns
        if self._equal:  # rendering comes as it comes; a chunk is still as long as a gap
            self._left_ns, self._fresh = usual_ns, True
        else:
            left_ns, fresh = gap.room(now_ns)
            self._fresh = fresh or (gap.chunks == 0 and left_ns >= usual_ns - self._late_ns)
            self._left_ns = left_ns

    def longest(self, job: JobView, processor: str, hold_ns: float = 0) -> int:
        costs, start, left_ns = job.costs[job.stage], job.next_op, self._left_ns
        if processor != job.processor:  # it is bound to another one
            return start
        if processor != GPU:
            return costs.ops
        end = self._chunking.end_op(costs, start, left_ns, self._usual_ns, self._fresh)
        if hold_ns and end > start and self._holds:
            return costs.through(start, end, left_ns + self._chunking.margin_ns, hold_ns)
        return end

    def fitting(self, jobs: Sequence[JobView], processor: str) -> dict[int, int]:
        if processor != GPU:
            return super().fitting(jobs, processor)
        end_op, left_ns, usual_ns = self._chunking.end_op, self._left_ns, self._usual_ns
        ends, fresh = {}, self._fresh
        for job in jobs:
            if job.processor == GPU:
                next_op = job.next_op
                end = end_op(job.costs[job.stage], next_op, left_ns, usual_ns, fresh)
                if end > next_op:
                    ends[job.id] = end
        return ends

    def range(
        self, costs: StageCosts, processor: str, start: int, end: int, holds: bool = False
    ) -> tuple[int, int | None]:
        if processor != GPU:
            return end, costs.cpu_ns(start, end)
        last = costs.run_end[start]
        if holds and end > last and self._holds:
            return end, costs.whole_ns(start, end)
        end = end if end < last else last
        return end, costs.gpu_ns(start, end)

    def until_ns(self, processor: str) -> int:
        return self._gap.end_ns if self._early and processor == GPU else 0

    def held_to(self, costs: StageCosts, start: int) -> int:
        return costs.chunk_end[start] if self.holds_fallback else 0

    def fits(self, costs: StageCosts, next_op: int, left_ns: int) -> bool:
        return self._chunking.end_op(costs, next_op, left_ns, self._gap.usual_ns, False) > next_op

    def learn(self, job: Job, processor: str, start: int, end: int, elapsed_ns: int) -> float:
        costs = job.stage_costs
        if processor == GPU:
            costs.learn_gpu(start, end, elapsed_ns)
            job.owner.window.gpu_ns += elapsed_ns
            return costs.gpu_ratio.value
        costs.learn_off(processor, elapsed_ns)
        return costs.cpu_ratio.value if processor == CPU else costs.ratio_on(processor)


class Ranges(Timing):
    """Timing of ranges that choose their processor, any of which may draw the frames, or none."""

    @property
    def _free(self) -> bool:
        return self._equal or self._gap.endless

    def closed(self, trigger: str, going_on: Callable[[], bool]) -> str:
        return self.renderer if self.drawing else ""

    def look(self, now_ns: int) -> None:
        self._usual_ns = self._gap.usual_ns
        self._left_ns, self._fresh = self._gap.room(now_ns)

    def longest(self, job: JobView, processor: str, hold_ns: float = 0) -> int:
        costs, start = job.costs[job.stage], job.next_op
        there = costs.on(processor)
        end = start if there is None else there.supported_to(start)
        return self.range(costs, processor, start, end)[0] if end > start else start

    def range(
        self, costs: StageCosts, processor: str, start: int, end: int, holds: bool = False
    ) -> tuple[int, int | None]:
        """Not over the head of an exit, where the processor cuts networks."""
        ranges = costs.on(processor)
        if costs.variants and (ranges is None or ranges.cuts):
            end = min(end, costs.run_end[start])
        expected_ns = None if ranges is None else ranges.ns(start, end)
        if expected_ns is None or processor != self.renderer or self._free:
            return end, expected_ns
        fits = self._fitting(costs, processor, start, end)
        return fits, expected_ns if fits == end else costs.on_ns(processor, start, fits) or 0

    def _fitting(self, costs: StageCosts, processor: str, start: int, end: int) -> int:
        """The part of a range that fits the gap; an op longer than any gap begins with one, and
        makes that frame late."""
        low, high = start, end
        while low < high:  # the longest that fits
            middle = (low + high + 1) // 2
            if (costs.on_ns(processor, start, middle) or 0) <= self._left_ns:
                low = middle
            else:
                high = middle - 1
        op_ns = costs.on_ns(processor, start, start + 1) or 0
        return start + 1 if low == start and self._fresh and op_ns > self._usual_ns else low

    def until_ns(self, processor: str) -> int:
        return self._gap.end_ns if processor == self.renderer and not self._free else 0

    def fits(self, costs: StageCosts, next_op: int, left_ns: int) -> bool:
        ns = costs.on_ns(self.renderer, next_op, next_op + 1)
        return ns is not None and ns <= left_ns

    def learn(self, job: Job, processor: str, start: int, end: int, elapsed_ns: int) -> float:
        job.stage_costs.learn_on(processor, start, end, elapsed_ns)
        return job.stage_costs.ratio_on(processor)
