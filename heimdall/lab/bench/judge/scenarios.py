"""A scenario live at one frame rate and size: its figures, and what the simulator needs of it."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app.options import RunOptions
from heimdall.lab.bench.judge.identity import network_id, thinned, us
from heimdall.lab.bench.live import run_live
from heimdall.lab.bench.observed import Observed
from heimdall.lab.bench.scenario import Scenario, load_scenario
from heimdall.lab.bench.systems import parse_system
from heimdall.runtime.telemetry.trace import read_recording


def run_scenario(
    device: str | None,
    scenario: str,
    fps: float,
    size: tuple[int, int],
    seconds: float,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """``figures`` of the run, and ``run``, what it showed of the machine. Raises HeimdallError
    when it cannot run."""
    changes = {"fps": fps, "size": tuple(size)}
    workload = load_scenario(scenario).model_copy(update=changes)
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        options = RunOptions(headless=True, seconds=seconds, device=device, trace=trace)
        system = parse_system(workload.scheduler)
        summary = run_live(workload, system, options, progress, lone_times=False)
        return {"figures": _figures(summary), "run": _run(workload, trace, summary["seconds"])}


def _figures(summary: dict[str, Any]) -> dict[str, Any]:
    fps, interval = summary["fps"], summary["frame_interval_ms"]
    dnns = {
        name: {
            "inferences": dnn["inferences"],
            "mean_ms": dnn["latency_ms"]["mean"],
            "p50_ms": dnn["latency_ms"]["p50"],
            "p99_ms": dnn["latency_ms"]["p99"],
            "worst_ms": dnn["latency_ms"]["max"],
            "missed": dnn["deadline_misses"],
        }
        for name, dnn in summary["dnns"].items()
    }
    return {
        "seconds": summary["seconds"],
        "frames": summary["frames"],
        "fps_mean": fps["mean"],
        "fps_min": fps["min"],
        "interval_p99_ms": interval["p99"],
        "late_share": round(summary["late_frames"] / max(summary["frames"], 1), 4),
        "render_p50_ms": summary["render_ms"]["p50"],
        "render_p99_ms": summary["render_ms"]["p99"],
        "gap_utilization": summary["gap_utilization"],
        "decision_p50_us": summary["decision_us"]["p50"],
        "decision_p99_us": summary["decision_us"]["p99"],
        "power_w": summary["power_w"],
        "dnns": dnns,
    }


def _run(workload: Scenario, trace: Path, seconds: float) -> dict[str, Any]:
    """How long everything took that a profile of networks does not tell."""
    seen = Observed(read_recording(trace), last_s=seconds)  # without the warm-up
    decode_ns = _decodes(trace)
    dnns = []
    for dnn in workload.declared():
        slope, delays_ns = seen.gpu_line(dnn.name)
        stages = range(len(seen.plan(dnn.name).stages))
        dnns.append(
            {
                "network": network_id(dnn, workload.settings(dnn.name).alone_ms),
                "gpu_slowdown": round(slope, 4),
                "gpu_delay_us": thinned(map(us, delays_ns)),
                "cpu_slowdown": [round(each, 3) for each in thinned(seen.cpu_slowdowns(dnn.name))],
                "prepare_us": [
                    thinned(map(us, seen.samples("prepare", dnn.name, str(stage))))
                    for stage in stages
                ],
                "tasks": [
                    [round(each) for each in thinned(seen.samples("tasks", dnn.name, str(stage)))]
                    for stage in stages
                ],
                "decode_us": thinned(map(us, decode_ns[dnn.name])),
                "luminance_difference": [
                    round(each, 1) for each in thinned(seen.differences(dnn.name))
                ],
            }
        )
    return {
        "scenario": workload.name,
        "fps": workload.fps,
        "size": list(workload.size),
        "render_us": thinned(map(us, seen.samples("render")), most=48),
        "guard_us": us(seen.typical("guard")),
        "handoff_us": thinned(map(us, seen.handoffs())),
        "move_us": us(seen.typical("move")),
        "dnns": dnns,
    }


def _decodes(trace: Path) -> defaultdict[str, list[float]]:
    """How long each DNN's postprocessing took: spans of the pool, not events of the recording."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for span in json.loads(trace.read_text())["traceEvents"]:
        name, _, what = span["name"].rpartition(" ")
        if what == "decode":
            found[name].append(span["dur"] * 1e3)
    return found
