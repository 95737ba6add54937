"""Other results of the laboratory as tables for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from heimdall.cli.cells import NONE
from heimdall.cli.cells import facts as _facts
from heimdall.cli.cells import number as _ms
from heimdall.cli.cells import table as _table

MOST_DIFFERENCES = 20


def measure_report(result: Mapping[str, Any]) -> list[Table | str]:
    """What ``heimdall measure`` found, a block for each way of using the GPU."""
    parts: list[Table | str] = []
    for row, file in zip(result["rows"], result["files"], strict=True):
        parts += [*_measured_row(row), f"written: {file}", ""]
    return parts


def _measured_row(row: Mapping[str, Any]) -> list[Table | str]:
    machine, engine, chunks = row["machine"], row["engine"], row["chunks"]
    preemption, energy, runs = row["preemption"], row["energy"], row["scenarios"]
    means = engine.get("geometric_mean", {})
    stolen = machine.get("stolen_percent")
    facts = [
        ("machine", f"{machine['cpu']}, {machine['cores']} cores; {machine['os']}"),
        ("GPU", f"{machine['gpu']} ({machine['driver']}); {machine['mode']}"),
        ("OpenGL", machine["renderer"]),
        (
            "measured",
            f"{machine['date']}, in {machine['measured_s']:.0f} s after a warm-up of "
            f"{machine['warm_up_s']:.0f} s"
            + (f"; {stolen:g}% of the cores' time was stolen" if stolen is not None else ""),
        ),
        (
            "engine",
            engine.get("not_measured")
            or ", ".join(f"{ratio:.2f} times as fast as {name}" for name, ratio in means.items()),
        ),
        (
            "chunks",
            chunks.get("not_measured")
            or f"{chunks['pieces']} chunks take {chunks['ratio']:.3f} times the whole network, "
            f"{chunks['ns_a_chunk'] / 1e3:.0f} us a chunk",
        ),
        (
            "preemption",
            preemption.get("not_measured")
            or f"GPU free after {_ms(preemption['gpu_free_ms']['p50'], 2)} ms p50, "
            f"{_ms(preemption['gpu_free_ms']['p99'], 2)} ms p99",
        ),
        ("power", energy.get("not_measured") or f"{energy['idle_w']:g} W idle"),
    ]
    if "not_measured" in runs:
        return [_facts([*facts, ("scenarios", runs["not_measured"])])]
    columns = [
        "scenario",
        ">fps",
        ">lowest",
        ">interval p99 ms",
        ">late",
        ">latency ms mean (worst)",
    ]
    return [_facts(facts), "", _table(None, columns, map(_scenario_row, runs, runs.values()))]


def _scenario_row(name: str, run: Mapping[str, Any]) -> list[object]:
    if "not_measured" in run:
        return [name, NONE, NONE, NONE, NONE, run["not_measured"]]
    latencies = "  ".join(
        f"{dnn} {_ms(each['mean_ms'])} ({_ms(each['worst_ms'])})"
        for dnn, each in run["dnns"].items()
    )
    late = f"{100 * run['late_share']:.1f}%"
    frames = [_ms(run["fps_mean"], 2), _ms(run["fps_min"]), _ms(run["interval_p99_ms"]), late]
    return [name, *frames, latencies]


def replay_report(result: Mapping[str, Any]) -> list[Table | str]:
    """Where a replay differs."""
    differences = result["differences"]
    if not differences and not result["stopped"]:
        return [f"{result['steps']} steps replayed: every action is as recorded"]
    lines = [f"{result['steps']} steps replayed, {len(differences)} differ:"]
    for each in differences[:MOST_DIFFERENCES]:
        lines.append(f"step {each['step']} at {each['now_ms']:.3f} ms")
        lines += [f"  recorded {action}" for action in each["recorded"] or ["nothing"]]
        lines += [f"  replayed {action}" for action in each["replayed"] or ["nothing"]]
    if len(differences) > MOST_DIFFERENCES:
        lines.append(f"... and {len(differences) - MOST_DIFFERENCES} more")
    if result["stopped"]:
        lines.append(f"stopped: {result['stopped']}")
    return list(lines)


def exits_report(result: Mapping[str, Any]) -> list[Table | str]:
    """One line an exit: how often it is right, and when it is there."""
    columns = ("exit", "after", ">accuracy %", ">ms", ">10th", ">90th", ">head kB", "kept")
    rows = [
        [
            exit["name"],
            exit["after"] or "",
            _ms(100 * exit["accuracy"]),
            _ms(exit["delay_ms"], 3),
            _ms(exit["delay_p10_ms"], 3),
            _ms(exit["delay_p90_ms"], 3),
            _ms(exit["head_kb"]),
            "yes" if exit["kept"] else "",
        ]
        for exit in result["exits"]
    ]
    where = result["file"] or "nothing was written: give --out FILE"
    tested = f"{result['tested_on']} pictures that it was not trained on"
    if result["judged_by"] != "labels":
        tested = f"{tested}: {result['judged_by']} against those of the whole network"
    return [
        _table(None, columns, rows),
        f"on {result['engine']['device']}; accuracy on {tested}",
        f"{where}, {result['size_kb']:.0f} kB",
    ]
