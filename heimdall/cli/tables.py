"""The results of commands as tables for people; those of runs are in ``run_tables``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from heimdall.cli.cells import NONE
from heimdall.cli.cells import facts as _facts
from heimdall.cli.cells import number as _ms
from heimdall.cli.cells import table as _table
from heimdall.cli.run_tables import run_summary

WIDE = 240


def show(*parts: Table | str) -> None:
    """Print on standard output; plain, wide text where that is no terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDE)
    for part in parts:
        console.print(Text(part) if isinstance(part, str) else part)


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
        ("driver priorities", _priorities(gpu, gl)),
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


def _priorities(gpu: Mapping[str, Any] | None, gl: Mapping[str, Any]) -> str:
    """What drivers make of networks and of rendering, or why they make nothing of it."""
    given = {"networks": gpu and gpu["priority"], "rendering": gl["priority"]}
    lines = [f"{what}: {_priority(each)}" for what, each in given.items() if each]
    hints = [f"hints of OpenCL: {_list(gpu['hints'])}"] if gpu and gpu["hints"] else []
    return "\n".join([*lines, *hints]) or NONE


def _priority(given: Mapping[str, Any]) -> str:
    return ": ".join(filter(None, [given["level"] or "as usual", given["why"]]))


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


def model3d_report(found: Mapping[str, Any]) -> list[Table | str]:
    """What is in a 3-D model, or why it cannot be drawn."""
    if found["error"]:
        return [found["error"]]  # which names the file
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
        return [f"{found['board']}: print it at any size, the same both ways, and keep it flat"]
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


def pose_report(found: Mapping[str, Any]) -> list[Table | str]:
    """Where the camera was in each frame; in a room also why it was lost, and planes."""
    frames, planes = found["frames"], found.get("planes")
    tracked = [each for each in frames if each["state"] == "tracked"]
    lines = [f"{len(tracked)} of {len(frames)} frames tracked"]
    why = Counter(each["reason"] for each in frames if each.get("reason"))
    lines += [f"{count} without a pose: {reason}" for reason, count in why.items()]
    unit = " m" if found.get("metres", True) else ""
    lines += [
        f"{each['sequence']:6d}  {_triple(each['translation'], 4)}{unit}, "
        f"off by {each['reprojection_px']:.2f} px"
        for each in tracked
    ]
    if found["ms"]["p50"] is not None:
        lines.append(f"{found['ms']['p50']:.1f} ms p50, {found['ms']['p99']:.1f} ms p99")
    text = "\n".join(lines)
    return [text] if not planes else [text, _planes(planes, metres=bool(unit))]


def _planes(planes: Iterable[Mapping[str, Any]], *, metres: bool) -> Table:
    rows = [
        [
            each["kind"],
            " x ".join(f"{side:.2f}" for side in each["extent"]),
            _triple(each["point"], 2),
            _triple(each["normal"], 2),
        ]
        for each in planes
    ]
    title = "Planes, in metres" if metres else "Planes, in the room's own unit"
    return _table(title, ("kind", "size", "middle", "normal"), rows)


def _triple(values: Iterable[float], digits: int) -> str:
    return ", ".join(f"{value:.{digits}f}" for value in values)
