"""The results of commands as tables for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from heimdall.bench.statistics import over_runs
from heimdall.cli import cells
from heimdall.cli.cells import NONE
from heimdall.cli.cells import facts as _facts
from heimdall.cli.cells import number as _ms
from heimdall.cli.cells import table as _table

WIDE = 240
MOST_DIFFERENCES = 20


def show(*parts: Table | str) -> None:
    """Print on standard output; plain, wide text where that is no terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDE)
    for part in parts:
        console.print(Text(part) if isinstance(part, str) else part)


def run_summary(summary: Mapping[str, Any]) -> list[Table | str]:
    """What a run did: frames, then one line a DNN, then errors."""
    fps, interval = summary["fps"], summary["frame_interval_ms"]
    device = summary["device"]
    facts = [
        ("app", f"{summary['app']} on {summary['source']}"),
        ("GPU", f"{device['gpu']} ({device.get('mode', 'hardware')})"),
        ("scheduler", f"{summary['scheduler']}, {summary.get('mode', 'elastic')}"),
        (
            "frames",
            f"{summary['frames']} in {summary['seconds']:.1f} s:"
            f" {_ms(fps['mean'], 2)} fps of {summary['fps_target']:g}"
            f" (windows of 1/3 s: {_ms(fps['min'])} to {_ms(fps['max'])}),"
            f" {summary['late_frames']} late ({cells.percent(summary['late_rate'], 1)})",
        ),
        (
            "interval",
            f"{_ms(interval['p50'], 2)} ms p50, {_ms(interval['p99'], 2)} ms p99,"
            f" {_ms(interval['max'], 2)} ms longest",
        ),
        (
            "rendering",
            f"{_ms(summary['render_ms']['p50'], 2)} ms p50,"
            f" {_ms(summary['render_ms']['p99'], 2)} ms p99",
        ),
    ]
    if (age := summary["picture_age_ms"])["p50"] is not None:
        old = f"{_ms(age['p50'])} ms old p50, {_ms(age['p99'])} ms p99, when shown"
        facts.append(("picture", old))
    if world := summary.get("world"):
        seen = f"tracked in {cells.percent(world['tracked'])} of frames, lost {world['lost']} times"
        facts.append(("world", f"{seen}; a pose takes {_ms(world['pose_ms']['p50'])} ms p50"))
    if summary["gap_utilization"] is not None:
        used = f"{100 * summary['gap_utilization']:.0f}% used while work was waiting"
        facts.append(("gaps", used))
    if summary.get("simulated"):
        facts.append(("simulated", f"{summary['times_real_time']:.0f} times faster than real time"))
    else:
        facts += _measured(summary)
    columns = ["DNN", ">inferences", ">a second", ">mean ms", ">p99", ">end to end", ">GPU"]
    columns += [">CPU", ">chunks", ">fallback ops", ">missed", ">%"]
    rows = [_dnn_row(name, dnn) for name, dnn in summary["dnns"].items()]
    parts: list[Table | str] = [_facts(facts), "", _table(None, columns, rows)]
    if summary.get("windows"):
        parts += ["", _windows(summary["windows"])]
    errors = [f"error: {error}" for error in summary.get("errors", ())]
    return parts + (["", *errors] if errors else [])


def _windows(windows: Mapping[str, Any]) -> Table:
    """How a run on a machine that changes went on: mean latency and misses of each DNN."""
    columns = ["window", ">fps", ">late"]
    columns += [f">{name}" for name in next(iter(windows.values()))["dnns"]]
    rows = []
    for name, window in windows.items():
        row = [name, _ms(window["fps"], 1), f"{100 * window['late_rate']:.0f}%"]
        for dnn in window["dnns"].values():
            row.append(f"{_ms(dnn['latency_ms'], 0)} ms, {100 * dnn['miss_rate']:.0f}% missed")
        rows.append(row)
    return _table(None, columns, rows)


def _measured(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What only a live run has."""
    decision, memory = summary["decision_us"], summary["memory_mb"]
    return [
        ("decisions", f"{_ms(decision['p50'])} us p50, {_ms(decision['p99'])} us p99"),
        ("memory", f"{_ms(memory['end'], 0)} MB at the end, {_ms(memory['peak'], 0)} MB at most"),
    ]


def _dnn_row(name: str, dnn: Mapping[str, Any]) -> list[object]:
    latency, whole = dnn["latency_ms"], dnn["end_to_end_ms"]
    counts = [dnn["gpu"], dnn["cpu"], dnn["chunks"], dnn["fallback_ops"], dnn["deadline_misses"]]
    times = [_ms(latency.get("mean")), _ms(latency.get("p99")), _ms(whole.get("mean"))]
    a_second = cells.rates(_ms(dnn["achieved_hz"], 2), dnn["required_hz"])
    missed = cells.percent(dnn["miss_rate"])
    return [name, dnn["inferences"], a_second, *times, *counts, missed]


def bench_report(result: Mapping[str, Any]) -> list[Table | str]:
    """Systems side by side: frames, then a line for each DNN with a column a system. Of several
    runs there are means, with half the 95% interval of each."""
    systems = result["systems"]
    over = result.get("over_runs") or {name: over_runs([run]) for name, run in systems.items()}
    frames = [
        [
            name,
            cells.mean(over[name]["fps"].get("mean"), 2),
            cells.extremes(over[name]["fps"].get("min"), over[name]["fps"].get("max")),
            cells.mean(over[name]["frame_interval_ms"].get("p99")),
            cells.mean(over[name].get("picture_age_ms", {}).get("p50")),
            cells.mean(over[name].get("late_rate"), 1, 100),
            cells.mean(over[name].get("gap_utilization"), 0, 100),
            _overhead(run["gpu"]),
        ]
        for name, run in systems.items()
    ]
    columns = ["system", ">fps", ">windows of 1/3 s", ">interval p99 ms", ">picture old ms"]
    columns += [">late %", ">gaps used %", ">GPU not useful"]
    powers = [run.get("power_w") for run in systems.values()]
    if any(power is not None for power in powers):  # where the counters can be read
        columns.append(">power W")
        frames = [[*row, _ms(power)] for row, power in zip(frames, powers, strict=True)]
    names = list(dict.fromkeys(dnn for run in systems.values() for dnn in run["dnns"]))
    rows = [
        [f"{dnn} {what}", *(cell(over[name]["dnns"][dnn]) for name in systems)]
        for dnn in names
        for what, cell in _DNN_FIGURES
    ]
    machine = result["machine"]
    first = next(iter(systems.values()), None)
    gpu = f"; {first['device']['gpu']}, {first['device']['mode']}" if first else ""
    parts: list[Table | str] = [
        f"{result['title']} on {machine['processor']}, {machine['cores']} cores{gpu}"
    ]
    if systems:
        latencies = _table(None, ["latencies in ms", *(f">{name}" for name in systems)], rows)
        if (runs := max(len(each) for each in result.get("runs", {"": [0]}).values())) > 1:
            parts.append(f"{runs} runs in turns: means, and half the 95% interval of each")
        parts += [*_loads(systems), "", _table(None, columns, frames), "", latencies]
    failures = [f"failed: {failure}" for failure in result["failures"]]
    errors = [f"{name}: {e}" for name, run in systems.items() for e in run["errors"]]
    return parts + (["", *failures, *errors] if failures or errors else [])


def _loads(systems: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The input sizes that were found, a line each: the same for every system."""
    found = {name: load for run in systems.values() for name, load in run.get("loads", {}).items()}
    return [
        f"{name}: {load['alone_ms']:.1f} ms alone at {load['size'][0]}x{load['size'][1]}"
        f" ({load['wanted_ms']:g} were asked for)"
        for name, load in found.items()
    ]


_DNN_FIGURES: Sequence[tuple[str, Callable[[Mapping[str, Any]], str]]] = (
    ("mean", lambda dnn: cells.mean(dnn.get("latency_ms", {}).get("mean"))),
    ("longest", lambda dnn: cells.mean(dnn.get("latency_ms", {}).get("max"))),
    ("missed %", lambda dnn: cells.mean(dnn.get("miss_rate"), 1, 100)),
    ("a second", cells.achieved),
)


def _overhead(gpu: Mapping[str, Any]) -> str:
    """The part of the GPU's time that rendering and each network alone would not have taken."""
    if not gpu["busy_ms"]:
        return NONE
    return f"{100 * (1 - gpu['useful_ms'] / gpu['busy_ms']):.1f}%"


def device_report(report: Mapping[str, Any]) -> list[Table | str]:
    """What ``list_devices`` found."""
    gpu, software, gl = report["gpu"], report["software_gpu"], report["gl"]
    runtime = report["onnxruntime"]
    opencl = [
        f"{index}: {each['name']} ({each['platform']}, {each['version']}, {_units(each)})"
        + (f" refused: {each['refused']}" if each.get("refused") else "")
        for index, each in enumerate(report["opencl"])
    ]
    if gpu and report["opencl_error"]:
        opencl.append(f"left out: {report['opencl_error']}")
    cameras = [line for camera in report["cameras"] for line in _camera_lines(camera)]
    facts = [
        ("GPU", _gpu_line(gpu, software) if gpu else f"none: {report['opencl_error']}"),
        ("driver", f"{gpu['platform']}, {gpu['driver']}, {gpu['version']}" if gpu else NONE),
        ("software GPU", software["description"] if software else "not needed: a real GPU"),
        ("OpenCL", "\n".join(opencl) or "no device"),
        ("OpenGL ES" if gl["es"] else "OpenGL", _gl_line(gl)),
        ("CPU", f"{report['cpu']['name']}, cores for all else: {_list(report['cpu']['cores'])}"),
        (
            "processors",
            "\n".join(f"{each['name']}: {_processor_line(each)}" for each in report["processors"]),
        ),
        (
            "onnxruntime",
            runtime.get("error") or _runtime_line(runtime),
        ),
        ("cameras", "\n".join(cameras) or "none: apps play their clips"),
    ]
    return [_facts(facts)]


def _processor_line(each: Mapping[str, Any]) -> str:
    lanes = each["lanes"]
    return each["device"] + (f", up to {lanes} at once" if lanes > 1 else "")


def _camera_lines(camera: Mapping[str, Any]) -> list[str]:
    """What it is, and a line for each format: its sizes with the best rate of each."""
    problem = f" (unusable: {camera['error']})" if camera["error"] else ""
    note = f" ({camera['note']})" if camera["note"] else ""
    lines = [f"{camera['source']}: {camera['name']}{problem}{note}"]
    for each in camera["formats"] or ():
        sizes = (
            f"{size['width']}x{size['height']}"
            + (f" {max(size['fps']):.3g} fps" if size["fps"] else "")
            for size in each["sizes"]
        )
        lines.append(f"  {each['format']}: {', '.join(sizes) or 'sizes unknown'}")
    return lines


def _gl_line(gl: Mapping[str, Any]) -> str:
    if not gl["renderer"]:
        return str(gl["error"])
    return "\n".join(
        [f"{gl['renderer']}, {gl['version']}", *(f"refused: {each}" for each in gl["refused"])]
    )


def measure_report(result: Mapping[str, Any]) -> list[Table | str]:
    """What ``heimdall devices --measure`` found, a block for each way of using the GPU."""
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


def _runtime_line(runtime: Mapping[str, Any]) -> str:
    gpus = runtime["gpu_devices"]
    usable = f"; as the GPU: --device {' or '.join(gpus)}" if gpus else ""
    return f"{runtime['version']}, {_list(runtime['providers'])}{usable}"


def _gpu_line(gpu: Mapping[str, Any], software: Mapping[str, Any] | None) -> str:
    kind = f"software GPU, {software['mode']}" if software else gpu["type"]
    return f"{gpu['name']} ({kind}, {_units(gpu)})"


def _units(device: Mapping[str, Any]) -> str:
    count = device["compute_units"]
    return f"{count} compute unit{'s' if count != 1 else ''}"


def _list(items: Iterable[object]) -> str:
    return ", ".join(str(item) for item in items)


def serve_report(result: Mapping[str, Any]) -> list[Table | str]:
    """What clients asked for, and the app's figures where one ran beside."""
    rows = [
        [name, each["answered"], each["failed"], _ms(each["latency_ms"])]
        for name, each in result["models"].items()
    ]
    title = (
        f"{result['refused']} requests were refused by a full line" if result["refused"] else None
    )
    served = _table(title, ("model", ">answered", ">failed", ">ms, mean"), rows)
    return [*(run_summary(result["app"]) if result["app"] else []), served]


def content_report(found: Mapping[str, Any]) -> list[Table | str]:
    """What is in a 3-D model, or why it cannot be drawn."""
    if found["error"]:
        return [f"{found['file']}: {found['error']}"]
    size = " x ".join(f"{side:g}" for side in found["size_m"])
    rows = [
        ["triangles", f"{found['triangles']:,}"],
        ["materials", found["materials"]],
        ["animations", ", ".join(found["animations"]) or "none"],
        ["size, m", size],
        ["drawing, ms", _ms(found["gpu_ms"], 2)],
        ["loading, ms", _ms(found["load_ms"])],
    ]
    return [_table(Path(found["file"]).name, ["", ""], rows), *found["notes"]]


def calibration_report(found: Mapping[str, Any]) -> list[Table | str]:
    """What a camera was found to be; or where its board is."""
    if "board" in found:
        return [f"{found['board']}: print it without scaling it to one side only, keep it flat"]
    camera = found["camera"]
    rows = [
        ["picture", f"{camera['width']}x{camera['height']}"],
        ["fx, fy, px", f"{camera['fx']:.1f}, {camera['fy']:.1f}"],
        ["give or take, px", f"{found['focal_sd_px']:.2f}"],
        ["cx, cy, px", f"{camera['cx']:.1f}, {camera['cy']:.1f}"],
        ["k1, k2, p1, p2, k3", ", ".join(f"{each:.4f}" for each in camera["distortion"])],
        ["reprojection error, px", f"{found['reprojection_px']:.2f}"],
        ["views (left out)", f"{found['views']} ({found['not_fit']})"],
        ["frames with the board", f"{found['seen']} of {found['frames']}"],
        ["of the picture covered", f"{found['covered']:.0%}"],
    ]
    return [_table("Camera", ["", ""], rows), f"kept in {found['file']}"]


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
