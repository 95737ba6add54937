"""Who has the software GPU, and for how long, when networks and rendering are not coordinated:

    python -m benchmarks.softgpu                       # shopping-phone under four policies
    python -m benchmarks.softgpu --policies rr,fifo --seconds 10 --scenario emoji

Runs the baseline ``multithread`` (a thread and an OpenCL queue for each network) and looks at two
records: when each kernel began and ended, by the driver's profiling events, and when each thread of
the software GPU had a core, by the kernel's own record of switches. One process for each policy.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from bisect import bisect_left
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any

from benchmarks.switches import Stint, time_used, watched
from heimdall.app import RunOptions, create
from heimdall.engine.opencl.state import OpenCLState
from heimdall.lab.bench.inference import Inference, WholeNetwork
from heimdall.lab.bench.scenario import load_scenario
from heimdall.lab.bench.systems import parse_system
from heimdall.lab.bench.uncoordinated import Uncoordinated
from heimdall.lab.bench.workload import as_app
from heimdall.runtime.execution.deployment import Deployment
from heimdall.runtime.execution.processors import Processors
from heimdall.runtime.run import open_run
from heimdall.system.softgpu import list_threads

POLICIES = "rr,rr-30,fifo,normal"
RENDERING, NETWORKS = "rendering", "networks"

Kernel = tuple[int, int, str, int]  # began and ended (ns), whose queue it was in, enqueued (ns)


class Noted(WholeNetwork):
    """Keeps when its kernels ran."""

    def __init__(self, name: str, kernels: list[Kernel], *arguments: Any) -> None:
        super().__init__(*arguments)
        self._name, self._kernels = name, kernels

    def run(self) -> None:
        super().run()
        assert isinstance(self._state, OpenCLState)
        self._kernels += [
            (event.profile.start, event.profile.end, self._name, event.profile.queued)
            for events in self._state.events.values()
            for event in events
        ]


class Watched(Uncoordinated):
    """The baseline ``multithread`` with noted networks."""

    def __init__(self) -> None:
        super().__init__(parse_system("multithread"))
        self.kernels: list[Kernel] = []

    def network(self, deployment: Deployment, stage: int, processors: Processors) -> Inference:
        with processors.confined():  # a queue may come with threads
            engine = processors.gpu.beside()
        dnn = deployment.dnn
        return Noted(dnn.name, self.kernels, engine, deployment.graphs[stage], dnn.force_fallback)


def watch(scenario: str, policy: str, seconds: float) -> dict[str, Any]:
    """One policy: what a row of the table shows."""
    options = RunOptions(headless=True, gpu_policy=policy)
    system = Watched()
    with open_run(create(as_app(load_scenario(scenario))), options, system=system) as run:
        software = run.setup.processors.software
        if software is None:
            raise SystemExit("this machine has a GPU: there is no software GPU to be watched")
        names = {thread.tid: thread.name for thread in list_threads()}
        own = [thread.tid for thread in software.threads()]
        before = {tid: time_used(tid) for tid in own}
        began_s, frames = time.perf_counter(), 0
        with watched(own) as stints:
            while (elapsed_s := time.perf_counter() - began_s) < seconds:
                run.turn()
                frames += 1
        summary = run.finish()
        used = {tid: (time_used(tid), before[tid]) for tid in own}
        run.halt()
    return {
        "policy": policy,
        "mode": summary["device"]["mode"],
        "fps": round(frames / elapsed_s, 2),
        "render_ms": summary["render_ms"],
        "latency_ms": {name: each["latency_ms"] for name, each in summary["dnns"].items()},
        "queues": taking_turns(system.kernels),
        "threads": turns(stints, names),
        "used": [
            {"thread": names[tid], **vars(after.since(earlier))}
            for tid, (after, earlier) in used.items()
            if after and earlier
        ],
    }


def taking_turns(kernels: Sequence[Kernel]) -> dict[str, Any]:
    """How queues alternate. Only where a kernel ended while another queue's had been waiting since
    before that (``contested``) there was a choice. ``alternating``: the share of these after which
    another queue's kernel came; ``kept_ms``: how long one queue was served before that."""
    kernels = sorted(kernels)
    starts = {owner: [k for k in kernels if k[2] == owner] for _, _, owner, _ in kernels}
    contested = switched = 0
    kept_ms, kept_ns = [], 0
    for (start, end, owner, _), following in pairwise(kernels):
        kept_ns += end - start
        others = (own for name, own in starts.items() if name != owner)
        if not any(_waits(own, end) for own in others):
            kept_ns = 0
            continue
        contested += 1
        if following[2] != owner:
            switched += 1
            kept_ms.append(kept_ns / 1e6)
            kept_ns = 0
    return {
        "kernels": len(kernels),
        "contested": contested,
        "alternating": round(switched / max(contested, 1), 3),
        "kept_ms": spread(kept_ms),
    }


def _waits(kernels: Sequence[Kernel], now_ns: int) -> bool:
    """Whether the next of a queue's kernels had been enqueued by then."""
    following = bisect_left(kernels, (now_ns,))
    return following < len(kernels) and kernels[following][3] < now_ns


def turns(stints: Sequence[Stint], names: dict[int, str]) -> dict[str, Any]:
    """How long the threads of rendering and those of networks ran before the other's did."""
    found: dict[str, Any] = {}

    def owner(stint: Stint) -> str:
        return RENDERING if names[stint.tid].startswith("llvmpipe") else NETWORKS

    rows = [(who, list(row)) for who, row in groupby(stints, owner)]
    for name in (RENDERING, NETWORKS):
        own = [row for who, row in rows if who == name]
        found[name] = {
            "turns": len(own),
            "ran_ms": spread([sum(stint.ns for stint in row) / 1e6 for row in own]),
            "ended_by_preemption": sum(row[-1].preempted for row in own),
        }
    return found


def spread(values: Sequence[float]) -> dict[str, float | None]:
    """Median and maximum."""
    if not values:
        return {"p50": None, "max": None}
    return {"p50": round(statistics.median(values), 2), "max": round(max(values), 2)}


HEADINGS = (
    "policy",
    "fps",
    "kernels followed by another queue's",
    "a queue is served for, ms",
    "networks keep the core for, ms",
    "ended by preemption",
    "rendering keeps it for, ms",
    "ended by preemption",
)


def row(found: dict[str, Any]) -> tuple[str, ...]:
    """One line of the table."""
    queues, threads = found["queues"], found["threads"]

    def both(values: dict[str, float | None]) -> str:
        return "–" if values["p50"] is None else f"{values['p50']:.3g} / {values['max']:.3g}"

    def ended(who: str) -> str:
        return f"{threads[who]['ended_by_preemption']} of {threads[who]['turns']}"

    return (
        found["mode"].partition(" on ")[0],
        f"{found['fps']:.1f}",
        f"{100 * queues['alternating']:.0f}%",
        both(queues["kept_ms"]),
        both(threads[NETWORKS]["ran_ms"]),
        ended(NETWORKS),
        both(threads[RENDERING]["ran_ms"]),
        ended(RENDERING),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--policies", default=POLICIES)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--scenario", default="shopping-phone")
    parser.add_argument("--json", action="store_true", help="everything that was measured")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.worker:
        print(json.dumps(watch(chosen.scenario, chosen.worker, chosen.seconds)))
        return
    command = [sys.executable, "-m", "benchmarks.softgpu", *sys.argv[1:], "--worker"]
    found = [
        json.loads(subprocess.run([*command, policy], stdout=-1, text=True, check=True).stdout)
        for policy in chosen.policies.split(",")
    ]
    if chosen.json:
        print(json.dumps(found, indent=1))
        return
    for cells in (HEADINGS, ("---", *["---:"] * (len(HEADINGS) - 1)), *map(row, found)):
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
