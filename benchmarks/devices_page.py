"""docs/laboratory/devices.md: the table of measured machines, made of the rows in profiles/devices.

    python -m benchmarks.devices_page

A row is what ``heimdall measure --output profiles/devices/NAME.toml`` wrote. For each
machine the page also tells what a simulation with its file gives, beside what was measured.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.performance_page import table
from heimdall.lab.bench.judge.programme import RATES, SCENARIOS, SHARES, SIZES, title
from heimdall.lab.simulator.devices import MACHINES
from heimdall.lab.simulator.simulate import simulate
from heimdall.lab.simulator.tables import read_toml
from heimdall.system import paths

PAGE = Path("docs/laboratory/devices.md")
NOT_MEASURED = "not measured"
SIMULATED_S = 60.0

_INTRO = """# What machines are good for

For whoever chooses a machine, or has measured one and compares.

Each row is a machine that was judged by `heimdall measure`: a programme that measures
for {seconds:.0f} s ({parts}) after a warm-up that compiles and profiles what is new. Its file,
kept in `profiles/devices/`, is also a device to simulate on any other machine, by its name or as a
file: `heimdall simulate shopping --device FILE`. This page is written by
`python -m benchmarks.devices_page`.

- *Engine*: times of onnxruntime's CPU provider over those of Heimdall's engine, geometric mean of
  the bundled networks. A software GPU and onnxruntime compute on the same number of cores; beside
  a real GPU onnxruntime has all of them.
- *Chunks*: each bundled network in 8 chunks over the whole in one call, geometric mean, and what
  one more chunk adds, median.
- *GPU free*: how long until a network that runs has made room after it was told to yield.
- *Stolen*: the share of the cores' time that the host of a virtual machine took meanwhile.

Files of before 29 November 2026 compare a chunk's time with the ops that were planned, not with
those that ran. Their `gpu_slowdown` is too low where chunks ended early, and so are the latencies
that were simulated with them. Live latencies of that time include waits behind chunks that had not
yielded, because a chunk began on the CPU meanwhile.
"""
_SIMULATED = """
What a simulation with the machine's file gives for {seconds:.0f} s, beside what was measured (the
file was made in the same runs, so this says how much the simulator leaves out, not how well it
foretells other loads). Its times are drawn one by one, while what disturbs a machine comes in
bursts, so latencies agree less than frames do:
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--page", type=Path, default=PAGE, help="file to write")
    page = parser.parse_args().page
    paths.replace_file(page, text(sorted(MACHINES.glob("*.toml"))).encode())
    print(f"wrote {page}", file=sys.stderr)


def text(files: Sequence[Path]) -> str:
    """The page of these rows: those that were measured first."""
    rows = [(file, read_toml(file)) for file in files]
    rows.sort(key=lambda row: "not_measured" in row[1])
    parts = ", ".join(f"{part} {seconds:.0f} s" for part, seconds in SHARES.items())
    lines = [_INTRO.format(seconds=sum(SHARES.values()), parts=parts)]
    columns = ["machine", "engine", "chunks", "us a chunk", "GPU free ms p50, p99"]
    columns += ["shopping 30 fps 720p: fps, p99 ms", "60 fps 720p", "stolen", "date"]
    lines += table(columns, (_row(row) for _, row in rows))
    for file, row in rows:
        if "not_measured" not in row:
            lines += ["", *_machine(file, row)]
    return "\n".join(lines) + "\n"


def _row(row: Mapping[str, Any]) -> list[str]:
    if "not_measured" in row:
        return [f"{row['title']}: {NOT_MEASURED}, {row['not_measured']}", *["-"] * 8]
    engine, chunks, free, machine = (
        row[each] for each in ("engine", "chunks", "preemption", "machine")
    )
    runs = row["scenarios"]
    stolen = machine.get("stolen_percent")
    return [
        row["title"],
        _if(engine, lambda: f"{engine['geometric_mean']['onnxruntime']:.2f}"),
        _if(chunks, lambda: f"{chunks['ratio']:.3f}"),
        _if(chunks, lambda: f"{chunks['ns_a_chunk'] / 1e3:.0f}"),
        _if(free, lambda: "{p50:.1f}, {p99:.1f}".format(**free["gpu_free_ms"])),
        *(_frames(runs, title(SCENARIOS[0], fps, SIZES[0])) for fps in RATES),
        "-" if stolen is None else f"{stolen:g}%",
        machine["date"],
    ]


def _if(part: Mapping[str, Any], say: Any) -> str:
    return NOT_MEASURED if "not_measured" in part else str(say())


def _frames(runs: Mapping[str, Any], name: str) -> str:
    run = runs.get(name, {"not_measured": ""})
    return _if(run, lambda: f"{run['fps_mean']:.2f}, {run['interval_p99_ms']:.1f}")


def _machine(file: Path, row: Mapping[str, Any]) -> Iterator[str]:
    machine, energy = row["machine"], row["energy"]
    yield f"## {row['title']}"
    yield ""
    yield (
        f"{machine['cpu']}, {machine['cores']} cores; GPU: {machine['gpu']}, {machine['mode']}; "
        f"driver {machine['driver']}; {machine['renderer']}; {machine['os']}; Python "
        f"{machine['python']}, onnxruntime {machine['onnxruntime']}, Heimdall "
        f"{machine['heimdall']}. Measured for {machine['measured_s']:.0f} s, opening included, "
        f"after a warm-up of {machine['warm_up_s']:.0f} s. Power: "
        + (energy.get("not_measured") or ", ".join(f"{k} {v:g}" for k, v in energy.items()))
        + "."
    )
    yield ""
    if "note" in row:
        yield from (row["note"], "")
    yield from _networks(row)
    yield from _scenarios(row["scenarios"])
    if "profile" in row:
        yield _SIMULATED.format(seconds=SIMULATED_S)
        yield from _simulated(file, row["scenarios"])


def _networks(row: Mapping[str, Any]) -> Iterator[str]:
    engine, chunks = row["engine"], row["chunks"]
    if "not_measured" in engine:
        yield f"Engine: {NOT_MEASURED}, {engine['not_measured']}."
        return
    rivals = list(engine["geometric_mean"])
    columns = ["network", "ms", "spread"]
    columns += [f"{rival} {what}" for rival in rivals for what in ("ms", "spread", "ratio")]
    columns += ["8 chunks / whole", "us a chunk"]
    cells = []
    for name, found in engine["networks"].items():
        cut = chunks.get("networks", {}).get(name, {})
        figures = [found.get("ms"), found.get("spread")]
        figures += [
            found.get(f"{rival}_{what}") for rival in rivals for what in ("ms", "spread", "ratio")
        ]
        more = cut["ns_a_chunk"] / 1e3 if "ns_a_chunk" in cut else None
        cells.append([name, *map(_number, [*figures, cut.get("ratio"), more])])
    yield from table(columns, cells)
    yield ""
    yield f"On {engine['cores']} core(s); a spread is that of the middle half of the turns."
    yield ""


def _scenarios(runs: Mapping[str, Any]) -> Iterator[str]:
    if "not_measured" in runs:
        yield f"Scenarios: {NOT_MEASURED}, {runs['not_measured']}."
        return
    columns = ["scenario", "fps", "lowest", "p99 ms", "late", "decision us p99"]
    columns += ["latency ms: mean, p99, worst"]
    cells = []
    for name, run in runs.items():
        if "not_measured" in run:
            cells.append([name, *["-"] * 5, f"{NOT_MEASURED}: {run['not_measured']}"])
            continue
        figures = [run["fps_mean"], run["fps_min"], run["interval_p99_ms"]]
        late, decision = f"{100 * run['late_share']:.1f}%", _number(run.get("decision_p99_us"))
        latencies = "; ".join(_latency(dnn, each) for dnn, each in run["dnns"].items())
        cells.append([name, *map(_number, figures), late, decision, latencies])
    yield from table(columns, cells)


def _latency(dnn: str, each: Mapping[str, Any]) -> str:
    if "mean_ms" not in each:
        return f"{dnn} none"
    return f"{dnn} {each['mean_ms']:.0f}, {each['p99_ms']:.0f}, {each['worst_ms']:.0f}"


def _simulated(file: Path, runs: Mapping[str, Any]) -> Iterator[str]:
    cells = []
    for scenario in SCENARIOS:
        for fps in RATES:
            for size in SIZES:
                name = title(scenario, fps, size)
                run = runs.get(name, {"not_measured": ""})
                if "not_measured" in run:
                    continue
                twin = simulate(
                    scenario, str(file), "max-total", seconds=SIMULATED_S, fps=fps, size=size
                )
                cells.append([name, *_beside(run, twin)])
    columns = ["scenario", "fps", "simulated", "p99 ms", "simulated", "late", "simulated"]
    yield from table([*columns, "mean latency ms: measured, simulated"], cells)


def _beside(run: Mapping[str, Any], twin: Mapping[str, Any]) -> list[str]:
    late = twin["late_frames"] / max(twin["frames"], 1)
    latencies = [
        f"{dnn} {_number(each.get('mean_ms'), 0)}, "
        f"{_number(twin['dnns'][dnn]['latency_ms']['mean'], 0)}"
        for dnn, each in run["dnns"].items()
    ]
    return [
        _number(run["fps_mean"]),
        _number(twin["fps"]["mean"]),
        _number(run["interval_p99_ms"]),
        _number(twin["frame_interval_ms"]["p99"]),
        f"{100 * run['late_share']:.1f}%",
        f"{100 * late:.1f}%",
        "; ".join(latencies),
    ]


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


if __name__ == "__main__":
    main()
