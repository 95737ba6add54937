"""What is known of networks as tables for people: catalogue, checks, profiles, chunks, passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from heimdall.cli.cells import number as _ms
from heimdall.cli.cells import table as _table


def model_list(models: Sequence[Mapping[str, Any]]) -> list[Table | str]:
    """The catalogue."""
    rows = [[m["name"], m["title"], m["task"], _ms(m["size_mb"]), m["licence"]] for m in models]
    return [_table(None, ("model", "network", "gives", ">MB", "licence"), rows)]


def check_report(result: Mapping[str, Any]) -> list[Table | str]:
    """One line a model; what could not be checked below."""
    results = result["models"]
    columns = ["model", ">ops", ">fallback", ">rel. error", ">GPU ms", ">chunked", ">chunks"]
    columns += [">onnxruntime ms", ">longest enqueue", ">MB a job", ">cores", "precision"]
    rows = [
        [
            Path(result["model"]).name,
            result["ops"],
            len(result["fallback_ops"]),
            f"{result['max_rel_error']:.1e}",
            _ms(result["gpu_ms"], 2),
            _ms(result["chunked_ms"], 2),
            result["chunks"],
            _ms(result["onnxruntime_ms"], 2),
            _ms(result["longest_enqueue_ms"], 2),
            _ms(result["activations_mb"]),
            result["cores"],
            result["precision"],
        ]
        for result in results
        if not result["error"]
    ]
    failed = [f"{result['model']}: {result['error']}" for result in results if result["error"]]
    return ([_table(None, columns, rows)] if rows else []) + failed


def profile_report(result: Mapping[str, Any]) -> list[Table | str]:
    """What was tuned; each network's ops, the longest marked, and its totals."""
    parts: list[Table | str] = [
        f"{each['network']}: other kernels for {each['changed']} of {each['layers']} kinds of"
        f" convolution, {each['before_ms']:.2f} -> {each['after_ms']:.2f} ms"
        + (f"; {each['wrong_kernels']} kernels are wrong here" if each["wrong_kernels"] else "")
        for each in result.get("tuned") or ()
    ]
    for network in result["networks"]:
        total = sum(op["ms"] for op in network["ops"]) or 1.0
        rows = [
            [
                op["index"],
                op["kind"] + (" (fallback)" if op["fallback"] else ""),
                op["name"],
                _ms(op["ms"], 3),
                f"{100 * op['ms'] / total:.1f}",
                f"{op['flops'] / max(op['ms'], 1e-6) / 1e6:.1f}",
                _bar(op["ms"], max(other["ms"] for other in network["ops"])),
            ]
            for op in network["ops"]
        ]
        columns = (">op", "kind", "name", ">ms", ">%", ">GFLOP/s", "")
        parts += [
            _table(network["network"], columns, rows),
            f"{network['device']} ({network['mode']}): whole network {network['gpu_ms']:.2f} ms,"
            f" on one CPU core {network['cpu_ms']:.2f} ms,"
            f" one more chunk costs {network['chunk_cost_ms']:.3f} ms",
            "",
        ]
    return parts[:-1]


def _kept(chunk: Mapping[str, Any]) -> str:
    kept = chunk["state_kb"]
    return "-" if kept is None else f"{kept:.0f}"


def partition_report(result: Mapping[str, Any]) -> list[Table | str]:
    """Chunks against the gap."""
    gap = result["gap_ms"]
    rows = [
        [
            number,
            chunk["network"],
            f"{chunk['start']}-{chunk['end'] - 1}",
            chunk["end"] - chunk["start"],
            _ms(chunk["ms"], 2),
            f"{100 * chunk['ms'] / gap:.0f}",
            _kept(chunk),
            "fallback" if chunk["fallback"] else _bar(chunk["ms"], gap),
        ]
        for number, chunk in enumerate(result["chunks"], 1)
    ]
    columns = (">chunk", "network", "ops", ">count", ">ms", ">% of the gap", ">kept kB", "")
    title = f"{result['model']}: {result['strategy']}, gap {gap:g} ms"
    parts: list[Table | str] = [_table(title, columns, rows)]
    return parts + [f"drawn: {path}" for path in result["pictures"]]


def pass_report(result: Mapping[str, Any]) -> list[Table | str]:
    """A table a pass, one line an op."""
    parts: list[Table | str] = []
    for each in result["passes"]:
        ops = each["ops"]
        rows = [[op["kind"], op["output"], _shape(op["shape"]), _few(op["nodes"])] for op in ops]
        title = f"{each['network']}, {each['pass']}: {len(ops)} ops"
        table = _table(title, ("kind", "output", "shape", "nodes"), rows)
        for column in table.columns:
            column.no_wrap = True
        parts += [table, ""]
    return parts


def _shape(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes)) or "1"


def _few(names: Sequence[str]) -> str:
    """The first and the last of many, which need no more than a line."""
    if len(names) <= 3:
        return ", ".join(names)
    return f"{names[0]}, {len(names) - 2} more, {names[-1]}"


def _bar(value: float, most: float) -> str:
    filled = round(24 * min(value / most, 1.0)) if most > 0 else 0
    return "#" * filled + (">" if value > most else "")
