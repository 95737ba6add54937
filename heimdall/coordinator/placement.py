"""Where each DNN runs: moves in flight, lost processors, and the offload step each second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from heimdall.coordinator.chunking import Chunking
from heimdall.coordinator.gap import Gap
from heimdall.coordinator.job import Dnn, Window
from heimdall.coordinator.offload import Load, step
from heimdall.vocabulary.events import Action, Move
from heimdall.vocabulary.processors import CPU, GPU, PROCESSORS, REMOTE

_MOVE_NS = 50_000_000  # section 6.3.2; then as measured
_LONGEST_HOLD = 32  # offload intervals


class Placement:
    """Decides moves; a DNN keeps running where it is until its DnnMoved arrives.

    After a move a DNN stays where it is for two steps; every move soon after the last doubles
    that, so two processors that look equally good are not swapped for ever.
    """

    def __init__(
        self,
        dnns: Mapping[str, Dnn],
        *,
        enabled: bool,
        margin: float,
        interval_ns: int,
        lanes: Mapping[str, int],
    ) -> None:
        """``lanes``: how many jobs each processor runs at once."""
        self._lanes = lanes
        self.enabled, self.margin, self.interval_ns = enabled, margin, interval_ns
        self.next_step_ns: float = inf  # before the first frame, and without offload
        self.lost: set[str] = set()
        self.binds = True  # False: each range of a job chooses its processor, and nothing moves
        self.moving: dict[str, tuple[str, int]] = {}  # DNN -> (target, when asked)
        # DNN and a processor on which it only fails, or is not built yet
        self._unfit = {(dnn.name, GPU) for dnn in dnns.values() if not dnn.plan.built}
        self._dnns = dnns
        self._move_ns = _MOVE_NS
        self._hold: dict[str, tuple[int, int]] = {}  # DNN -> (until, length)
        self._gap_ns_before = 0
        self._settled = False  # in the first interval all DNNs start at once: no sign of load

    def started(self, now_ns: int) -> None:
        if self.enabled:
            self.next_step_ns = now_ns + self.interval_ns

    def step(
        self, now_ns: int, gap: Gap, chunking: Chunking, frame_interval_ns: int, out: list[Action]
    ) -> None:
        """The periodic step: at most one move."""
        if self.next_step_ns <= now_ns:  # at once, however long the last one is ago
            missed = (now_ns - self.next_step_ns) // self.interval_ns
            self.next_step_ns += (missed + 1) * self.interval_ns
        gap.advance(now_ns)
        opened_ns = gap.opened_ns - self._gap_ns_before
        self._gap_ns_before = gap.opened_ns
        settled, self._settled = self._settled, True
        if settled and not self.moving and not self.lost - {REMOTE}:
            loads = [
                self._load(dnn, now_ns, opened_ns, gap.usual_ns, chunking, frame_interval_ns)
                for dnn in self._dnns.values()
            ]
            move = step(
                loads,
                margin=self.margin,
                move_ns=self._move_ns,
                interval_ns=self.interval_ns,
                lanes=self._lanes,
            )
            if move is not None and self.binds:
                self._send(move, now_ns, out)
        for dnn in self._dnns.values():
            dnn.window = Window()
            if dnn.processor != REMOTE and REMOTE in dnn.places:
                for costs in dnn.costs:
                    costs.forget(REMOTE)

    def moved(self, dnn: Dnn, processor: str, now_ns: int, out: list[Action]) -> None:
        """A DNN is loaded on ``processor`` (after a failed move, where it was)."""
        asked = self.moving.pop(dnn.name, None)
        if asked is not None:
            self._move_ns += int(0.3 * (now_ns - asked[1] - self._move_ns))
        if processor != dnn.processor:
            dnn.window = Window()
        dnn.processor = processor
        until_ns, length = self._hold.get(dnn.name, (0, 1))
        soon = until_ns and now_ns < until_ns + 4 * length * self.interval_ns
        length = min(2 * length, _LONGEST_HOLD) if soon else 2
        self._hold[dnn.name] = (now_ns + length * self.interval_ns, length)
        if processor in self.lost:
            self._evacuate(dnn, now_ns, out)

    def processor_lost(self, processor: str, now_ns: int, out: list[Action]) -> None:
        """All DNNs on it, or on their way to it, move away."""
        self.lost.add(processor)
        self.evacuate(now_ns, out)

    def evacuate(self, now_ns: int, out: list[Action]) -> None:
        """DNNs leave the processors that are lost, if they can and do not yet."""
        for dnn in self._dnns.values():
            if dnn.processor in self.lost:
                self._evacuate(dnn, now_ns, out)

    def processor_back(self, processor: str, now_ns: int, out: list[Action]) -> None:
        """Stranded DNNs come at once; others return by the step, or now when it is off."""
        self.lost.discard(processor)
        self._hold.clear()
        for dnn in self._dnns.values():
            if dnn.processor in self.lost:
                self._evacuate(dnn, now_ns, out)
            elif (dnn.name, GPU) in self._unfit:
                continue
            elif not self.enabled and processor == GPU and dnn.processor != GPU:
                self._move(dnn, GPU, "GPU is back", now_ns, out)

    def added(self, dnn: Dnn, now_ns: int, out: list[Action]) -> None:
        """A DNN that is loaded on a lost processor moves away, as the others have."""
        if not dnn.plan.built:
            self._unfit.add((dnn.name, GPU))
        if dnn.processor in self.lost:
            self._evacuate(dnn, now_ns, out)

    def built(self, dnn: Dnn, now_ns: int, out: list[Action]) -> None:
        """A DNN can be run on the GPU now, where it belongs."""
        self._unfit.discard((dnn.name, GPU))
        if GPU not in self.lost and dnn.processor != GPU:
            self._send(Move(dnn.name, GPU, "built for the GPU"), now_ns, out)

    def removed(self, name: str) -> None:
        """Forget a DNN that is not to be run any more."""
        self.moving.pop(name, None)
        self._hold.pop(name, None)
        self._unfit = {each for each in self._unfit if each[0] != name}

    def bound(self, dnn: Dnn) -> str:
        """The processor that its jobs have to run on; "" where each range chooses one."""
        return dnn.processor if self.binds else ""

    def why_nowhere(self, dnn: Dnn) -> str:
        """Why no processor can run a job of a DNN, "" if one can."""
        if len(self.lost) == len(self._lanes):
            return "every processor is lost"
        return "runs on no processor" if self.bound(dnn) and self.runs_nowhere(dnn) else ""

    def runs_on(self, dnn: Dnn) -> bool:
        """Whether the processor a DNN is loaded on works, and for it; any, where ranges choose."""
        if not self.binds:
            return len(self.lost) < len(self._lanes)
        return self._works(dnn, dnn.processor)

    def runs_nowhere(self, dnn: Dnn) -> bool:
        """Whether no processor works for a DNN, so that moving does not help either."""
        return not any(self._works(dnn, processor) for processor in dnn.places)

    def _works(self, dnn: Dnn, processor: str) -> bool:
        there = processor in self._lanes and processor not in self.lost
        return there and (dnn.name, processor) not in self._unfit

    def unfit(self, dnn: Dnn, processor: str, now_ns: int, out: list[Action]) -> None:
        """A DNN fails on ``processor`` again and again: it runs on another one, for good. If none
        is of use all are tried again, for what is wrong may end; a second apart, as its jobs are.
        """
        here = dnn.name, processor
        self._unfit.add(here)
        if self.runs_nowhere(dnn):
            unbuilt = None if dnn.plan.built else GPU
            self._unfit = {
                each
                for each in self._unfit
                if each[0] != dnn.name or each == here or each[1] == unbuilt
            }
        if self.runs_nowhere(dnn):
            self._unfit.discard(here)
        if dnn.processor == processor:
            self._evacuate(dnn, now_ns, out, f"keeps failing on the {processor.upper()}")

    def _evacuate(self, dnn: Dnn, now_ns: int, out: list[Action], reason: str = "") -> None:
        others = [each for each in dnn.places if each != dnn.processor and self._works(dnn, each)]
        if not others:
            return
        target = GPU if GPU in others else self._best(dnn, others)
        if self.moving.get(dnn.name, ("", 0))[0] == target:
            return
        self._move(dnn, target, reason or f"{dnn.processor.upper()} lost", now_ns, out)

    def _best(self, dnn: Dnn, processors: Sequence[str]) -> str:
        """Where a DNN takes least, of processors that never cut. (0: it is not known.)"""
        return min(processors, key=lambda each: (dnn.expected_off_ns(each) or inf, each))

    def _away(self, dnn: Dnn) -> str:
        """Where it is, off the GPU, or would be."""
        if dnn.processor != GPU:
            return dnn.processor
        there = [each for each in dnn.places if each != GPU and self._works(dnn, each)]
        return self._best(dnn, there) if len(there) > 1 else CPU

    def _other(self, dnn: Dnn) -> str:
        """Where else it could be, of processors that never cut; "" where there is no such one."""
        if dnn.processor == GPU or len(dnn.places) == len(PROCESSORS):
            return ""
        there = [each for each in dnn.places if each not in (GPU, dnn.processor)]
        return next((each for each in there if self._works(dnn, each)), "")

    def _move(self, dnn: Dnn, target: str, reason: str, now_ns: int, out: list[Action]) -> None:
        if self.binds:
            self._send(Move(dnn.name, target, reason), now_ns, out)

    def _send(self, move: Move, now_ns: int, out: list[Action]) -> None:
        self.moving[move.dnn] = (move.processor, now_ns)
        out.append(move)

    def _load(
        self, dnn: Dnn, now_ns: int, opened_ns: int, gap_ns: int, chunking: Chunking, frame_ns: int
    ) -> Load:
        gpu_ns, other_ns, chunks = dnn.expected_gpu()
        one_by_one_ns = gpu_ns + other_ns
        gaps = chunking.gaps(chunks, one_by_one_ns, gap_ns)
        away, other = self._away(dnn), self._other(dnn)
        cpu_ns = dnn.expected_off_ns(away)
        duty = 1.0 if dnn.greedy else min(1.0, dnn.window.inferences * cpu_ns / self.interval_ns)
        return Load(
            name=dnn.name,
            processor=dnn.processor,
            utility=dnn.plan.utility,
            constraint_ns=dnn.constraint_ns,
            latency_ns=dnn.latency_now_ns(now_ns),
            lone_gpu_ns=chunking.lone_ns(gaps, one_by_one_ns, gap_ns, frame_ns),
            cpu_ns=cpu_ns,
            away=away,
            other=other,
            other_ns=dnn.expected_off_ns(other) if other else 0,
            gpu_share=min(1.0, dnn.window.gpu_ns / max(opened_ns, 1)),
            gpu_demand=1.0
            if dnn.greedy
            else min(1.0, dnn.window.inferences * gpu_ns / max(opened_ns, 1)),
            cpu_duty=duty,
            greedy=dnn.greedy,
            # no CPU latency in the profile: whether the CPU pays is not known
            held=cpu_ns == 0
            or now_ns < self._hold.get(dnn.name, (0, 0))[0]
            or any((dnn.name, processor) in self._unfit for processor in (GPU, away)),
        )
