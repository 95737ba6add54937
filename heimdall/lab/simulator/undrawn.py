"""The baselines where nothing is drawn: threads that answer requests."""

from __future__ import annotations

from collections.abc import Sequence

from heimdall.app import App
from heimdall.lab.bench.systems import System
from heimdall.lab.simulator.clients import Answered, Follow, SimulatedModel
from heimdall.lab.simulator.machine import Machine
from heimdall.lab.simulator.uncoordinated import UncoordinatedRun
from heimdall.vocabulary.processors import CPU, GPU


class UncoordinatedRequests(UncoordinatedRun):
    """A baseline that answers requests, where nothing is drawn."""

    def __init__(
        self,
        models: Sequence[SimulatedModel],
        machine: Machine,
        system: System,
        seed: int,
        follow: Follow,
    ) -> None:
        super().__init__(
            (), machine, system, models=models, follow=follow, draws=False, fps=App.fps, seed=seed
        )

    @property
    def answered(self) -> list[Answered]:
        """Requests, in the order of their answers."""
        return self.requests.answered

    @property
    def busy_ns(self) -> dict[str, int]:
        """How long each processor has worked."""
        return {GPU: self._gpu_total_ns, CPU: self.cores.busy_ns}

    def run(self, until_ns: int | None = None) -> None:  # type: ignore[override]
        """Until every request is answered, or until then: what is not has waited in vain."""
        self.requests.begin(self.now_ns)
        while self.requests.unanswered and (due_ns := self._agenda.next_ns()) is not None:
            if until_ns is not None and due_ns > until_ns:
                break
            self.now_ns, call = self._agenda.pop()
            call(self.now_ns)
        if until_ns is not None:
            self.requests.end()
