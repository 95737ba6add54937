"""DISB's workloads (Han et al., OSDI '22), and XSched's video call (OSDI '25), by several systems.

    python benchmarks/disb.py --simulate --seeds 3      # a phone, in virtual time
    python benchmarks/disb.py --runs 3                  # live, in this process
    python benchmarks/disb.py --serve --only disb-a     # by Triton's client of `heimdall serve`
    python benchmarks/disb.py --ideal --seeds 16        # real-time clients alone, free preemption

Every system has all cores: a software GPU has them, too, as onnxruntime's threads do.

Prints a table, or with ``--json`` one JSON value. Of real-time clients: latency over what each
takes alone, its 99th percentile (that of the client that has most, and the mean over clients) and
its mean. Of best-effort clients: the longest latency, answers a second, and ``work``: how many
seconds the answers of a second take alone, and that over the first system's. In the video call
that is the speech.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks import serving
from heimdall.lab.bench.live_requests import LONE_RUNS, LONE_TURNS, WARM_UP, at_load
from heimdall.lab.bench.runner import compare
from heimdall.lab.bench.scenario import Scenario, load_scenario, scenario_names
from heimdall.lab.bench.standin import standin_path
from heimdall.lab.bench.traffic import Traffic
from heimdall.lab.simulator.simulate import simulate
from heimdall.runtime.telemetry.jobs import Outcome, request_figures
from heimdall.system.softgpu import allowed_cores
from heimdall.vocabulary.enums import Priority

SIMULATED = "multithread,priorities,fcfs,lst,max-total,max-min,edf-gaps"
LIVE = (
    "multithread-onnxruntime-all,multithread,fcfs,lst,edf-exits-noexits,max-total,max-min,edf-gaps"
)
SERVED = "fcfs,max-total,max-min,edf-gaps"
SECONDS = 60.0
LONGEST_MS = 60_000.0  # where a client has no SLO
RANKS = {Priority.HIGH: 1, Priority.NORMAL: 2, Priority.LOW: 3}  # of the protocol
Figures = dict[str, Any]


def figures(scenario: Scenario, runs: Sequence[Mapping[str, Any]]) -> Figures:
    """Of real-time and best-effort clients, from summaries of runs: means over these."""
    return {key: _mean([_of_run(scenario, run)[key] for run in runs]) for key in _KEYS}


_KEYS = ("p99", "p99_mean", "mean", "dropped", "longest_ms", "answers_hz", "work")


def _of_run(scenario: Scenario, run: Mapping[str, Any]) -> Figures:
    high = {name for name, each in scenario.models.items() if each.priority == Priority.HIGH}
    asked = run["requests"]
    over = {
        key: [
            asked[name]["latency_ms"][key] / asked[name]["lone_ms"]
            for name in high
            if _some(asked[name])
        ]
        for key in ("p99", "mean")
    }
    others = [each for name, each in asked.items() if name not in high]
    return {
        "p99": max(over["p99"], default=None),
        "p99_mean": _mean(over["p99"]),
        "mean": _mean(over["mean"]),
        "dropped": sum(asked[name]["dropped"] for name in high),
        "longest_ms": max(
            (each["latency_ms"]["max"] for each in others if each["finished"]), default=None
        ),
        "answers_hz": sum(each["finished"] for each in others) / run["seconds"],
        "work": sum(each["finished"] * each["lone_ms"] for each in others) / run["seconds"] / 1e3,
    }


def _some(model: Mapping[str, Any]) -> bool:
    """Whether its 99th percentile is known: at most a hundredth was dropped."""
    return bool(model["dropped"] <= model["submitted"] / 100 and model["finished"])


def _mean(values: Sequence[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return round(sum(known) / len(known), 4) if known else None


def simulated(name: str, systems: str, seeds: int, seconds: float) -> Figures:
    scenario = load_scenario(name)
    return {
        system: figures(
            scenario,
            [simulate(name, None, system, seconds=seconds, seed=seed) for seed in range(seeds)],
        )
        for system in systems.split(",")
    }


def live(name: str, systems: str, runs: int, seconds: float) -> Figures:
    found = compare(name, systems, runs=runs, seconds=seconds, gpu_cores=len(allowed_cores()))
    scenario = load_scenario(name)
    return {system: figures(scenario, each) for system, each in found["runs"].items()}


# --- through a server -----------------------------------------------------------------------------


def served(name: str, policies: str, runs: int, seconds: float) -> Figures:
    """The same of clients of `heimdall serve`, under each of these policies."""
    scenario = load_scenario(name).ending_after(seconds)
    return {
        policy: figures(scenario, [_served(scenario, policy, seed) for seed in range(runs)])
        for policy in policies.split(",")
    }


def _served(scenario: Scenario, policy: str, seed: int) -> Figures:
    files = {
        str(each.model): str(standin_path(str(each.model))) for each in scenario.models.values()
    }
    names = {model: model.replace(":", "-") for model in files}
    models = {names[model]: file for model, file in files.items()}
    cores = str(len(allowed_cores()))
    how = ("--scheduler", policy, "--processors", "gpu", "--gpu-cores", cores)
    server, (port, _) = serving.start("", models, *how)
    try:
        clients = {
            name: Client(port, names[str(each.model)], RANKS[Priority(each.priority)])
            for name, each in scenario.models.items()
        }
        lone_ns = {name: client.alone_ns() for name, client in clients.items()}
        for name, client in clients.items():
            if (slo_ns := scenario.slo_ns(name, lone_ns[name])) is not None:
                client.slo_ms = slo_ns / 1e6
        scenario, _ = at_load(scenario, lone_ns)
        return _answers(scenario, clients, lone_ns, seed)
    finally:
        _stop(server)


def _stop(server: subprocess.Popen[str]) -> None:
    server.send_signal(signal.SIGINT)
    server.communicate(timeout=60)


def _answers(
    scenario: Scenario, clients: Mapping[str, Client], lone_ns: Mapping[str, float], seed: int
) -> Figures:
    """A summary of a run, as far as ``figures`` needs it."""
    arrivals, outcomes = Traffic(scenario, seed).arrivals_ns(), list[Outcome]()
    began_ns = time.perf_counter_ns()
    end_ns = round((scenario.seconds or 0) * 1e9)

    def ask(name: str) -> None:
        closed, due_ns = scenario.loop_of(name) is not None, iter(arrivals[name])
        while True:
            now_ns = time.perf_counter_ns() - began_ns
            at_ns = (now_ns if now_ns < end_ns else None) if closed else next(due_ns, None)
            if at_ns is None:
                return
            time.sleep(max(0, at_ns - now_ns) / 1e9)
            answered = clients[name].ask()
            now_ns = time.perf_counter_ns() - began_ns
            outcomes.append(Outcome(name, at_ns, now_ns if answered else None))

    threads = [threading.Thread(target=ask, args=(name,)) for name in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = max(each.finished_ns or 0 for each in outcomes) / 1e9
    return {"requests": request_figures(outcomes, lone_ns), "seconds": seconds}


class Client:
    """Triton's, by gRPC: one request after the other, as DISB's are."""

    def __init__(self, port: int, model: str, rank: int) -> None:
        from tritonclient import grpc

        self._client = grpc.InferenceServerClient(f"127.0.0.1:{port}")
        self._model, self._rank, self.slo_ms = model, rank, LONGEST_MS
        (given,) = self._client.get_model_metadata(model, as_json=True)["inputs"]
        shape = [int(side) for side in given["shape"]]
        self._tensor = grpc.InferInput(given["name"], shape, "FP32")
        self._tensor.set_data_from_numpy(np.random.default_rng(0).random(shape, np.float32))

    def ask(self) -> bool:
        """Whether there was an answer: a policy may drop what comes too late."""
        from tritonclient.utils import InferenceServerException

        how: Figures = {"priority": self._rank, "parameters": {"slo_ms": self.slo_ms}}
        try:
            self._client.infer(self._model, [self._tensor], **how)
        except InferenceServerException:
            return False
        return True

    def alone_ns(self) -> float:
        times = []
        for _ in range(WARM_UP + LONE_RUNS * LONE_TURNS):
            began_ns = time.perf_counter_ns()
            self.ask()
            times.append(time.perf_counter_ns() - began_ns)
        return float(np.mean(times[WARM_UP:]))


# --- what no order can beat -----------------------------------------------------------------------

Rank = Callable[[float, float, float], float]  # of (when it came, alone, left), ns: the least runs
ORDERS: Mapping[str, Rank] = {
    "first come": lambda came, lone, left: came,
    "shortest": lambda came, lone, left: lone,
    "shortest remaining": lambda came, lone, left: left,
    "earliest deadline, 2 x alone": lambda came, lone, left: came + 2 * lone,
    "earliest deadline, 3 x alone": lambda came, lone, left: came + 3 * lone,
    "earliest deadline, 20 x alone": lambda came, lone, left: came + 20 * lone,
}


def ideal(name: str, orders: str, seeds: int, seconds: float) -> Figures:
    """Real-time clients with a processor of their own that changes jobs at any time for nothing, by
    each of the ``orders``: what a policy could reach at best."""
    alone = simulate(name, None, "fcfs", seconds=1.0, seed=0)["requests"]
    lone_ns = {model: each["lone_ms"] * 1e6 for model, each in alone.items()}
    scenario, _ = at_load(load_scenario(name).ending_after(seconds), lone_ns)
    high = [each for each in scenario.models if scenario.models[each].priority == Priority.HIGH]
    found = {}
    for order in orders.split(";"):
        runs = []
        for seed in range(seeds):
            arrivals = Traffic(scenario, seed).arrivals_ns()
            jobs = sorted((at, lone_ns[each], each) for each in high for at in arrivals[each])
            runs.append(_figures_of(_served_freely(jobs, ORDERS[order])))
        found[order] = {key: _mean([run.get(key) for run in runs]) for key in _KEYS}
    return {order: {**each, "work": 0.0} for order, each in found.items()}


def _served_freely(jobs: Sequence[tuple[float, float, str]], rank: Rank) -> dict[str, list[float]]:
    """By client, the latencies of its jobs over what they take alone."""
    ratios: dict[str, list[float]] = {}
    waiting: list[tuple[float, float, str, float]] = []
    now, coming = 0.0, deque(jobs)
    while coming or waiting:
        if not waiting:
            now = max(now, coming[0][0])
        while coming and coming[0][0] <= now:
            waiting.append((*coming[0], coming[0][1]))
            coming.popleft()
        job = min(waiting, key=lambda each: rank(each[0], each[1], each[3]))
        waiting.remove(job)
        came, lone, name, left = job
        until = min(now + left, coming[0][0]) if coming else now + left
        if until < now + left:
            waiting.append((came, lone, name, left - (until - now)))
        else:
            ratios.setdefault(name, []).append((until - came) / lone)
        now = until
    return ratios


def _figures_of(ratios: Mapping[str, Sequence[float]]) -> Figures:
    p99 = [float(np.percentile(each, 99)) for each in ratios.values()]
    return {
        "p99": max(p99),
        "p99_mean": _mean(p99),
        "mean": _mean([float(np.mean(each)) for each in ratios.values()]),
    }


# --- what is printed ------------------------------------------------------------------------------

_HEADS = (
    *("p99 over alone, most", "mean of p99", "mean", "dropped"),
    *("longest of best effort, ms", "answers a second", "work", "of the first's"),
)


def table(found: Mapping[str, Figures]) -> str:
    """In Markdown, a line for each system of each scenario."""
    lines = [f"| | system | {' | '.join(_HEADS)} |", "|---" * (len(_HEADS) + 2) + "|"]
    for scenario, systems in found.items():
        first = next(iter(systems.values()))
        for system, each in systems.items():
            share = each["work"] / first["work"] if first["work"] else None
            cells = [each[key] for key in _KEYS] + [share]
            said = " | ".join("" if cell is None else f"{cell:.2f}" for cell in cells)
            lines.append(f"| {scenario} | `{system}` | {said} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    how = parser.add_mutually_exclusive_group()
    for flag, way, said in (
        ("--simulate", (simulated, SIMULATED), "in virtual time"),
        ("--ideal", (ideal, ";".join(ORDERS)), "what orders of jobs could reach"),
        ("--serve", (served, SERVED), "through heimdall serve"),
    ):
        how.add_argument(flag, dest="way", action="store_const", const=way, help=said)
    parser.set_defaults(way=(live, LIVE))
    parser.add_argument("--only", help="scenarios, of disb-a to disb-real and video-call")
    parser.add_argument("--systems", help="instead of those that each way has")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--runs", "--seeds", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    disb = [each for each in scenario_names(draws=False) if each.startswith("disb-")]
    names = given.only.split(",") if given.only else [*disb, "video-call"]
    run, usual = given.way
    found = {}
    for name in names:
        print(name, file=sys.stderr)
        found[name] = run(name, given.systems or usual, given.runs, given.seconds)
    print(json.dumps(found) if given.json else table(found))


if __name__ == "__main__":
    main()
