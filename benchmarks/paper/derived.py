"""Numbers that follow from several runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.paper import networks
from benchmarks.paper.values import look_up


def derived(results: Mapping[str, Any]) -> dict[str, Any]:
    """The part "derived" of the results; what lacks a run is None."""

    def latency(run: str, dnn: str, figure: str) -> float | None:
        found: float | None = look_up(results, f"runs/{run}/dnns/{dnn}/latency_ms/{figure}")
        return found

    found = results.get("networks", {})
    face_ms = look_up(results, "runs/face alone/dnns/face/end_to_end_ms/mean")
    face_gpu_ms = look_up(results, "networks/RetinaFace/gpu_ms")
    style = "StyleTransfer"
    return {
        "slowdown": _ratio(latency("together", "style", "mean"), latency("alone", "style", "mean")),
        "sum_of_four": _sum(
            look_up(found, f"{name}/ms") for name in ("YOLO-v2", "DeepLab-v3", "PoseNet", style)
        ),
        "reduction": {
            system: _ratio(
                latency("shopping multithread", "style", "max"),
                latency(f"shopping {system}", "style", "max"),
            )
            for system in ("max-total", "max-total-static")
        },
        "face_on_cpu": None if None in (face_ms, face_gpu_ms) else face_ms - face_gpu_ms,
        "gap_ms": _difference(1000 / 30, look_up(results, "runs/nothing but drawn/render_ms/p50")),
        "short_ops": networks.short_ops(results.get("networks_of_pixel", found)),
        "longer": {
            way: networks.spread(found, way) for way in (*map(str, networks.SIZES), "chunks")
        },
    }


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def _difference(one: float, other: float | None) -> float | None:
    return None if other is None else one - other


def _sum(values: Any) -> float | None:
    found = list(values)
    return None if None in found else sum(found)
