"""Numbers that follow from several runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.paper import networks
from benchmarks.paper.values import look_up

_FOUR = ("YOLO-v2", "DeepLab-v3", "PoseNet", "StyleTransfer")
_COORDINATED = ("max-total", "max-total-static", "max-total-static-runs")


def derived(results: Mapping[str, Any]) -> dict[str, Any]:
    """The part "derived" of one repetition's results; what lacks a run is None."""

    def of(run: str, dnn: str, figure: str) -> float | None:
        found: float | None = look_up(results, f"runs/{run}/dnns/{dnn}/{figure}")
        return found

    found = results.get("networks", {})
    face_ms = of("face alone", "face", "end_to_end_ms/mean")
    face_gpu_ms = look_up(results, "networks/RetinaFace/gpu_ms")
    sum_of_four = _sum(look_up(found, f"{name}/ms") for name in _FOUR)
    style = ("style", "latency_ms/max")
    return {
        "slowdown": _ratio(
            of("together", "style", "latency_ms/mean"), of("alone", "style", "latency_ms/mean")
        ),
        "sum_of_four": sum_of_four,
        "tflops": _tflops(found),
        "perfect_fps": _ratio(1000.0, sum_of_four),
        "reduction": {
            system: _ratio(of("shopping multithread", *style), of(f"shopping {system}", *style))
            for system in _COORDINATED
        },
        "face_on_cpu": _difference(face_ms, face_gpu_ms),
        "face_rate_gain": _ratio(
            of("emoji max-total", "face", "achieved_hz"),
            of("emoji multithread", "face", "achieved_hz"),
        ),
        "utility_gain": _difference(
            look_up(results, "runs/three max-total-nooffload/utility/hand"),
            look_up(results, "runs/three max-min-nooffload/utility/hand"),
        ),
        "offload_gain": _ratio(
            of("three max-min-nooffload", "detect", "latency_ms/mean"),
            of("three max-min", "detect", "latency_ms/mean"),
        ),
        "gap_ms": _difference(1000 / 30, look_up(results, "runs/nothing but drawn/render_ms/p50")),
        "short_ops": networks.short_ops(results.get("networks_of_pixel", found)),
        "longer": {
            way: networks.spread(found, way) for way in (*map(str, networks.SIZES), "chunks")
        },
    }


def _tflops(found: Mapping[str, Any]) -> float | None:
    """What the GPU does a second in the networks whose FLOPs are known."""
    known = [(each["gflop"], each["ms"]) for each in found.values() if each.get("gflop")]
    return sum(gflop for gflop, _ in known) / sum(ms for _, ms in known) if known else None


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def _difference(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _sum(values: Iterable[float | None]) -> float | None:
    found = list(values)
    return None if None in found else sum(each for each in found if each is not None)
