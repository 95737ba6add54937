"""Expected latencies: the profile to begin with, then whatever really happens.

Every (DNN, stage, processor) has one ratio of actual to profiled time, smoothed exponentially,
so an op range never run before is expected as slow as the ranges around it proved to be. Sums
over op ranges are differences of prefix sums.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

from heimdall.schedulers.ranges import Ranges, Whole, lone_ns
from heimdall.schedulers.variants import borders, variants
from heimdall.vocabulary.plans import StagePlan
from heimdall.vocabulary.processors import CPU, GPU, REMOTE

# An expectation that is too low costs a late frame, one that is too high some idle GPU time: so
# it rises faster than it falls. For fallback ops both cost the same: what runs meanwhile ends when
# they are expected to, and a job that is back earlier has to wait for it.
_RISE, _FALL = 0.3, 0.1
_FORGET = 0.05  # a step
_OUTLIER, _LEAST = 3.0, 0.01  # one measurement counts at most _OUTLIER times the expectation


class Ratio:
    """A smoothed ratio of actual to profiled time."""

    __slots__ = ("_fall", "_rise", "value")

    def __init__(self, rise: float = _RISE, fall: float = _FALL) -> None:
        self.value, self._rise, self._fall = 1.0, rise, fall

    def learn(self, actual_ns: int, profiled_ns: int, weight: float = 1.0) -> None:
        """``weight`` 0..1: how much of the whole this measurement covers."""
        if profiled_ns <= 0 or actual_ns < 0:
            return
        value, seen = self.value, actual_ns / profiled_ns
        if seen > value:
            seen = seen if seen < _OUTLIER * value else _OUTLIER * value
            self.value = value + self._rise * weight * (seen - value)
        else:
            value += self._fall * weight * (seen - value)
            self.value = value if value > _LEAST else _LEAST


class StageCosts:
    """Expected times of one network: any op range on the GPU, fallback ops, the CPU.

    ``run_end[i]``: where the run of ops of op i's kind (GPU or fallback) ends, for what is handed
    to a processor may not cross it. ``chunk_end[i]``: where the static chunk that holds op i ends.
    ``variants`` of a network with early exits, by name; both ends respect their heads. What
    is said of the whole network is then said of the last one, which skips all heads.
    """

    def __init__(self, plan: StagePlan) -> None:
        self.plan = plan
        self.ops = len(plan.op_ns)
        self.fallback = plan.fallback
        self.chunk_cost_ns = plan.chunk_cost_ns
        self.tasks = float(plan.tasks)
        self.gpu_ratio, self.cpu_ratio = Ratio(), Ratio()
        self.fallback_ratio = Ratio(fall=_RISE)
        pairs = list(zip(plan.op_ns, plan.fallback, strict=True))
        self._gpu_sums = list(accumulate((0 if off else ns for ns, off in pairs), initial=0))
        self._gpu_total = max(self._gpu_sums[-1], 1)
        self._fallback_sums = list(accumulate((ns if off else 0 for ns, off in pairs), initial=0))
        self.run_end, self._runs_left = _runs(plan.fallback, borders(plan.exits))
        self._gpu_left = [
            self._gpu_sums[-1] - done_ns + plan.chunk_cost_ns * runs
            for done_ns, runs in zip(self._gpu_sums, self._runs_left, strict=True)
        ]
        self._has_fallback = any(plan.fallback)
        self.variants = variants(plan.exits, self.ops)
        self.whole = plan.exits[-1].name if plan.exits else ""
        for path in self.variants.values():
            path.measure(plan.op_ns, plan.fallback, self.run_end, plan.chunk_cost_ns)
        if self.variants:
            self._gpu_left = self.variants[self.whole].gpu_left
            self._gpu_total = max(self._gpu_left[0], 1)
        self._ranges = {
            processor: Ranges(op_ns, plan.cut_ns, plan.chunk_cost_ns)
            for processor, op_ns in plan.on
        }
        self._left_on: dict[tuple[str, str], list[int | None]] = {}
        self._lone_ns: int | None = None
        self.learnt = 0  # how often ratios of actual to profiled times have changed
        self.recut(plan.chunks)

    def recut(self, chunks: Iterable[tuple[int, int]]) -> None:
        """Use another static partition from now on."""
        self.chunk_end, self.chunks_left = _static_chunks(
            chunks, self.fallback, self.run_end, borders(self.plan.exits)
        )
        self._left_on.clear()
        for path in self.variants.values():
            path.recut(self.chunk_end, self.fallback)
        if self.variants:
            self.chunks_left = self.variants[self.whole].chunks_left

    def block_end(self, op: int) -> int:
        """Where the part of its chunk that ``op`` is in ends: before fallback ops."""
        chunk_end, run_end = self.chunk_end[op], self.run_end[op]
        return chunk_end if chunk_end < run_end else run_end

    def whole_ns(self, start: int, end: int) -> int:
        """A range with all that lies in it: its GPU ops, a wait for each run of them, and its
        fallback ops."""
        waits = self._runs_left[start] - self._runs_left[end]
        if not self.fallback[end - 1] and self.run_end[end - 1] > end:
            waits += 1  # the run goes on behind the end
        work_ns = self._gpu_sums[end] - self._gpu_sums[start] + waits * self.chunk_cost_ns
        return int(work_ns * self.gpu_ratio.value) + self.fallback_ns(start, end)

    def gpu_ns(self, start: int, end: int) -> int:
        """One chunk: the difference of prefix sums plus the cost of cutting."""
        work_ns = self._gpu_sums[end] - self._gpu_sums[start] + self.chunk_cost_ns
        return int(work_ns * self.gpu_ratio.value)

    def fallback_ns(self, start: int, end: int) -> int:
        """The fallback ops of a range, in the pool."""
        work_ns = self._fallback_sums[end] - self._fallback_sums[start]
        return int(work_ns * self.fallback_ratio.value)

    def cpu_ns(self, start: int = 0, end: int | None = None) -> int:
        """The whole network on one CPU core; a part of its ops takes its part of the time."""
        whole_ns = int(self.plan.cpu_ns * self.cpu_ratio.value)
        return whole_ns if end is None else whole_ns * (end - start) // self.ops

    @property
    def listed(self) -> bool:
        """Whether the plan lists its processors; else there are one GPU and CPU cores, which run
        whole networks."""
        return bool(self.plan.on)

    def on(self, processor: str) -> Ranges | None:
        """The network on a processor; None where the network is not for it."""
        if not self._ranges:  # once: what was learnt must not be lost
            self._ranges = self._usual()
        return self._ranges.get(processor)

    def _usual(self) -> dict[str, Ranges]:
        pairs = zip(self.plan.op_ns, self.fallback, strict=True)
        on_gpu = [None if off else ns for ns, off in pairs]
        ranges: dict[str, Ranges] = {GPU: Ranges(on_gpu, self.plan.cut_ns, self.chunk_cost_ns)}
        if self.plan.cpu_ns:
            ranges[CPU] = Whole(self.ops, self.plan.cpu_ns)
        if self.plan.remote_ns is not None:
            ranges[REMOTE] = Whole(self.ops, self.plan.remote_ns)
        return ranges

    def on_ns(self, processor: str, start: int, end: int) -> int | None:
        """Ops ``[start, end)`` on a processor, expected, with what cutting there costs; None where
        one of them is not supported."""
        ranges = self.on(processor)
        return None if ranges is None else ranges.ns(start, end)

    @property
    def lone_ns(self) -> int:
        """The network alone, as profiled: whole, on its fastest processor; where none supports all
        of it, the shortest way through its chunks."""
        if self._lone_ns is None:
            self.on(GPU)
            found = lone_ns(list(self._ranges.values()), self.chunk_end, self.ops)
            if self.variants:
                found = self._lone_whole_ns()
            self._lone_ns = sum(self.left(0)[:2]) if found is None else found
        return self._lone_ns

    def _lone_whole_ns(self) -> int | None:
        """The whole network without its heads, on its fastest processor."""
        found = []
        for ranges in self._ranges.values():
            spans = self.plan.exits[-1].ranges if ranges.cuts else ((0, self.ops),)
            parts = [ranges.profiled_ns(start, end) for start, end in spans]
            if None not in parts:
                found.append(sum(part or 0 for part in parts))
        return min(found, default=None)

    def left_on(self, processor: str, op: int, variant: str = "") -> int | None:
        """All of a variant (by default: of the whole network) from ``op`` on, on a processor and
        chunk by chunk, expected; None where an op of it is not supported."""
        found = self._left_on.get((processor, variant))
        if found is None:
            found = self._left_on[processor, variant] = self._suffixes(processor, variant)
        left_ns = found[op]
        return None if left_ns is None else int(left_ns * self._ranges[processor].ratio)

    def _suffixes(self, processor: str, variant: str) -> list[int | None]:
        """``left_on`` of every op, as profiled."""
        ranges, path = self.on(processor), self.variants.get(variant or self.whole)
        left: list[int | None] = [None] * self.ops + [0]
        for op in range(self.ops - 1, -1, -1):
            start = op if path is None else path.next_op[op]
            if start > op:
                left[op] = left[start]
            elif ranges is not None:
                end = self.block_end(op) if ranges.cuts else self.ops
                ns, rest_ns = ranges.profiled_ns(op, end), left[end]
                left[op] = None if ns is None or rest_ns is None else ns + rest_ns
        return left

    def left(self, next_op: int, variant: str = "") -> tuple[int, int, int]:
        """Everything from ``next_op`` on: (ns on the GPU, in as few chunks as fallback ops allow,
        ns of fallback ops, static chunks). Of a variant: by default of the whole network."""
        if self.variants:
            path, op = self.variants[variant or self.whole], next_op
            gpu_ns = int(path.gpu_left[op] * self.gpu_ratio.value)
            other_ns = int(path.fallback_left[op] * self.fallback_ratio.value)
            return gpu_ns, other_ns, path.chunks_left[op]
        gpu_ns = int(self._gpu_left[next_op] * self.gpu_ratio.value)
        other_ns = self.fallback_ns(next_op, self.ops) if self._has_fallback else 0
        return gpu_ns, other_ns, self.chunks_left[next_op]

    def longest(self, start: int, left_ns: int) -> int:
        """The end of the longest chunk from ``start`` that is expected to fit ``left_ns``."""
        sums, end = self._gpu_sums, self.run_end[start]
        limit = sums[start] + left_ns / self.gpu_ratio.value - self.chunk_cost_ns
        if sums[end] <= limit:
            return end
        return max(bisect_right(sums, limit, start, end) - 1, start)

    def through(self, start: int, end: int, left_ns: int, hold_ns: float) -> int:
        """Where a chunk that would end before ``end`` ends if it goes on behind fallback ops that
        take up to ``hold_ns``, and is to fit ``left_ns`` with them."""
        while end < self.ops and self.fallback[end] and not self.variants:
            behind = self.run_end[end]
            rest_ns = left_ns - self.whole_ns(start, behind)
            further = behind if behind == self.ops else self.longest(behind, rest_ns)
            too_long = self.fallback_ns(end, behind) > hold_ns or rest_ns < 0
            if too_long or (further == behind and behind < self.ops):
                break
            end = further
        return end

    def learn_gpu(self, start: int, end: int, elapsed_ns: int) -> None:
        """A chunk took ``elapsed_ns`` on the GPU."""
        profiled_ns = self._gpu_sums[end] - self._gpu_sums[start] + self.chunk_cost_ns
        share = profiled_ns / self._gpu_total
        weight = share if 0.1 < share < 1.0 else 0.1 if share < 1.0 else 1.0
        self.gpu_ratio.learn(elapsed_ns, profiled_ns, weight)

    def learn_on(self, processor: str, start: int, end: int, elapsed_ns: int) -> None:
        """Ops ``[start, end)`` took ``elapsed_ns`` on a processor."""
        ranges = self.on(processor)
        if ranges is not None:
            ranges.learn(start, end, elapsed_ns)
            self.learnt += 1

    def ratio_on(self, processor: str) -> float:
        """How many times as long as profiled ops take on a processor, as learnt by ``learn_on``."""
        ranges = self.on(processor)
        return 1.0 if ranges is None else ranges.ratio

    def learn_fallback(self, start: int, end: int, elapsed_ns: int) -> None:
        self.fallback_ratio.learn(elapsed_ns, self._fallback_sums[end] - self._fallback_sums[start])

    def learn_cpu(self, elapsed_ns: int) -> None:
        """The whole network took ``elapsed_ns`` on the CPU."""
        self.cpu_ratio.learn(elapsed_ns, self.plan.cpu_ns)

    def off_ns(self, processor: str) -> int:
        """The whole network on a processor that never cuts it: a CPU core, or the server. 0: not
        known, or not there."""
        if processor == CPU:
            return self.cpu_ns()
        return self.on_ns(processor, 0, self.ops) or 0

    def learn_off(self, processor: str, elapsed_ns: int) -> None:
        """The whole network took ``elapsed_ns`` on ``processor``."""
        if processor == CPU:
            self.learn_cpu(elapsed_ns)
        else:
            self.learn_on(processor, 0, self.ops, elapsed_ns)

    def forget(self, processor: str) -> None:
        """Nothing runs there: what was learnt counts less and less, or a server that was slow once
        would never be asked again."""
        if (ranges := self.on(processor)) is not None:
            ranges.ratio += _FORGET * (1.0 - ranges.ratio)
            self.learnt += 1

    def learn_tasks(self, tasks: int) -> None:
        """How many inputs this stage really got (hands, faces)."""
        self.tasks += 0.2 * (tasks - self.tasks)


def _runs(fallback: tuple[bool, ...], borders: frozenset[int]) -> tuple[list[int], list[int]]:
    """For each op: where the run of its kind ends, and how many GPU runs are left from it. No run
    crosses a border."""
    count = len(fallback)
    ends, left = [count] * count, [0] * (count + 1)
    for i in range(count - 1, -1, -1):
        opens = i + 1 == count or fallback[i] != fallback[i + 1] or i + 1 in borders
        ends[i] = i + 1 if opens else ends[i + 1]
        left[i] = left[i + 1] + (1 if opens and not fallback[i] else 0)
    return ends, left


def _static_chunks(
    chunks: Iterable[tuple[int, int]],
    fallback: tuple[bool, ...],
    run_end: list[int],
    borders: frozenset[int],
) -> tuple[list[int], list[int]]:
    """For each op: where its chunk of the partition ends (without one: its run), and how many
    chunks with work for the GPU are left."""
    count = len(run_end)
    ends, left = list(run_end), [0] * (count + 1)
    for start, end in chunks:
        for border in (*sorted(op for op in borders if start < op < end), end):
            ends[start:border] = [border] * (border - start)
            start = border
    on_gpu = False  # anything from here to the end of the chunk
    for i in range(count - 1, -1, -1):
        if ends[i] == i + 1:
            on_gpu = False
        left[i] = left[ends[i]] + (on_gpu := on_gpu or not fallback[i])
    return ends, left
