"""What ``benchmarks/engines.py`` measured, as tables, a chart and a page."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from heimdall.system import paths
from heimdall.system.cpu import cpu_name

# Okabe and Ito's colours: told apart by colour-blind readers, too.
_COLOURS = {"heimdall": "#0072B2", "onnxruntime": "#999999", "openvino": "#E69F00"}
_MORE = ("#009E73", "#CC79A7", "#56B4E9")
_OURS = "whole"  # among the times of a network

Report = Mapping[str, Any]
Network = Mapping[str, Any]

_INTRO = """# How fast the OpenCL engine is

For whoever asks how fast the engine is beside onnxruntime and OpenVINO.

Heimdall's OpenCL engine against other engines on the same cores, in float32. Written by
`python -m benchmarks.engines`; engines take turns, and the best of many rounds counts.
Idle cores are kept awake for all of them, as Heimdall's apps do in real time.
Heimdall's times are those of the kernels of a whole network, as a chunk of the app runs them;
"copies" is what it adds to bring the input in and the output out.
Another driver on the same cores: [drivers.md](drivers.md). Frames: [frames.md](frames.md).

{machine}

![Speed relative to onnxruntime]({chart})
"""
_LIMITS = """
*GEMM* is the speed reached of a large matrix product on these cores ({gemm:.0f} GFLOP/s), with
the multiplications of a direct convolution counted (Winograd's kernels do fewer). *Roofline* is
the time the network would take if every op ran at that speed, or moved each tensor once at the
speed of copying ({copy:.0f} GB/s), relative to its time: caches and Winograd can beat it.
*Chunked* is the network cut for 30 fps at 720p, *alone* the sum of all ops run one by one (by
the device's clock), both relative to the whole in one call; the means are of networks that are
cut at all. *Arena* is the peak of our activations relative to onnxruntime's arena.
"""


def machine() -> str:
    """What it was measured on."""
    return f"{cpu_name()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def geometric_mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return statistics.geometric_mean(found) if found else None


def peers(report: Report) -> list[str]:
    """The other engines that ran at least one network."""
    names = dict.fromkeys(way for network in report["networks"] for way in network["ms"])
    return [name for name in names if name != _OURS]


def speedups(networks: Iterable[Network], peer: str) -> list[float]:
    """Time of ``peer`` / ours, of every network that it ran."""
    times = (network["ms"] for network in networks)
    return [ms[peer] / ms["whole"] for ms in times if peer in ms]


def print_tables(report: Report) -> None:
    print("\n".join(_section(report)))


def write(page: Path, reports: Sequence[Report]) -> Path:
    """Write the page, and the chart beside it."""
    chart = page.with_suffix(".svg")
    page.parent.mkdir(parents=True, exist_ok=True)
    _draw(chart, reports)
    devices = " ".join(f"{key}: {value}." for key, value in reports[0]["device"].items())
    lines = [
        _INTRO.format(machine=f"Machine: {reports[0]['machine']}. {devices}", chart=chart.name)
    ]
    for report in reports:
        lines += _section(report)
    paths.replace_file(page, ("\n".join(lines) + "\n").encode())
    return page


def _section(report: Report) -> list[str]:
    others, networks = peers(report), report["networks"]
    cores = report["cores"]
    title = f"## {cores} core{'s' if cores > 1 else ''}"
    columns = ["network", "GFLOP", "Heimdall ms", "copies", *(f"{peer} ms" for peer in others)]
    columns += [f"{peer} / Heimdall" for peer in others]
    rows = [
        [
            network["name"],
            f"{network['gflop']:.2f}",
            _number(network["ms"]["whole"]),
            _number(network["copies_ms"]),
            *(_number(network["ms"].get(peer)) for peer in others),
            *(_number(_ratio(network, peer)) for peer in others),
        ]
        for network in networks
    ]
    bundled = [network for network in networks if network["bundled"]]
    for of, what in ((bundled, "geometric mean, bundled"), (networks, "geometric mean")):
        means = [_number(geometric_mean(speedups(of, peer))) for peer in others]
        rows.append([what, "", "", "", *("" for _ in others), *means])
    more = ["network", "ops", "fallback", "GEMM", "roofline", "chunks", "chunked", "alone"]
    more += ["longest enqueue ms", "activations MB", "arena"]
    limits = _LIMITS.format(gemm=report["gemm_gflops"], copy=report["copy_gbs"])
    return [
        *(title, "", *table(columns, rows)),
        *(
            limits,
            *table(more, [*(_quality(each, report) for each in networks), _mean(report)]),
        ),
        "",
    ]


def _quality(network: Network, report: Report) -> list[str]:
    ms = network["ms"]["whole"]
    return [
        network["name"],
        str(network["ops"]),
        str(network["fallback_ops"]),
        f"{100 * network['gflop'] / ms * 1e3 / report['gemm_gflops']:.0f}%",
        f"{100 * _limit_ms(network, report) / ms:.0f}%",
        str(network["chunks"]),
        f"{_chunked(network):.3f}",
        f"{_alone(network):.3f}",
        _number(network["longest_enqueue_ms"]),
        f"{network['activations_mb']:.1f}",
        f"{_arena(network):.2f}",
    ]


def _limit_ms(network: Network, report: Report) -> float:
    """The roofline: each op as fast as its arithmetic, or its bytes, allow."""
    flops, copied = 1e6 * report["gemm_gflops"], 1e6 * report["copy_gbs"]
    return float(sum(max(done / flops, moved / copied) for done, moved in network["costs"]))


def _mean(report: Report) -> list[str]:
    """Of those in several chunks, for what chunks cost."""
    networks = report["networks"]

    def mean(figure: Callable[[Network], float], of: Sequence[Network] = networks) -> str:
        value = geometric_mean(figure(network) for network in of)
        return "" if value is None else f"{value:.3f}"

    cut = [network for network in networks if network["chunks"] > 1]
    sums = ["", "", "", "", "", mean(_chunked, cut), mean(_alone, cut)]
    return ["geometric mean", *sums, "", "", mean(_arena)]


def _chunked(network: Network) -> float:
    return float(network["relative"]["chunked"])


def _alone(network: Network) -> float:
    return float(network["relative"]["op by op"])


def _arena(network: Network) -> float:
    return float(network["activations_mb"] / max(network["arena_mb"], 1e-9))


def _ratio(network: Network, peer: str) -> float | None:
    return network["ms"][peer] / network["ms"]["whole"] if peer in network["ms"] else None


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table in Markdown that is also readable as it is."""
    cells = [list(columns), *(list(row) for row in rows)]
    widths = [max(2, *(len(row[index]) for row in cells)) for index in range(len(columns))]

    def line(row: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return [line(cells[0]), line(rule), *map(line, cells[1:])]


def _draw(path: Path, reports: Sequence[Report]) -> None:
    """Bars of speed relative to onnxruntime, a panel for each number of cores."""
    import matplotlib
    from matplotlib.figure import Figure  # not pyplot: no display, no global state

    matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text: a tenth of the size
    count = max(len(report["networks"]) for report in reports)
    figure = Figure(figsize=(10, 1.2 + 0.55 * count * len(reports)))
    panels = figure.subplots(len(reports), 1, squeeze=False)[:, 0]
    for axes, report in zip(panels, reports, strict=True):
        _draw_panel(axes, report)
    figure.tight_layout()
    figure.savefig(path)


def _draw_panel(axes: Any, report: Report) -> None:
    networks = [n for n in report["networks"] if "onnxruntime" in n["ms"]][::-1]
    shown = ["heimdall", *(peer for peer in peers(report) if peer != "onnxruntime")]
    height = 0.8 / len(shown)
    more = iter(_MORE)
    for index, engine in enumerate(shown):
        colour = _COLOURS.get(engine) or next(more)
        way = "whole" if engine == "heimdall" else engine
        places, speeds = [], []
        for place, network in enumerate(networks):
            if way in network["ms"]:
                places.append(place + 0.4 - height * (index + 0.5))
                speeds.append(network["ms"]["onnxruntime"] / network["ms"][way])
        bars = axes.barh(places, speeds, height * 0.95, color=colour, label=engine)
        axes.bar_label(bars, fmt="%.2f", padding=2, fontsize=7)
    axes.axvline(1, color=_COLOURS["onnxruntime"], linewidth=1.2)
    axes.set_yticks(range(len(networks)), [network["name"] for network in networks])
    cores = report["cores"]
    axes.set_xlabel(f"speed relative to onnxruntime, {cores} core{'s' if cores > 1 else ''}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right")
