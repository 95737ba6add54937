"""Write the table of kernels for this machine's family of devices: tune_family.py [MODEL...]

    python scripts/tune_family.py --cores 1              the bundled networks, one compute unit
    python scripts/tune_family.py --cores 2              the same, several
    python scripts/tune_family.py nanodet my.onnx --shape input=1x3x416x416

Measures the variants of every convolution on this machine, which nothing else may use meanwhile,
and writes those that win clearly, and compute what the default computes, to
profiles/tuning/FAMILY-UNITS.json, with the machine, its driver and the date: that file is shipped.
They become this machine's own choices too. Each file is written as a whole: name all networks at
once. --precision fp16, beside fp32, adds half precision where the device has it.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heimdall.cli.console import ProgressBars
from heimdall.cli.parameters import parse_shape
from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.engine.opencl.tuning import family, write_family
from heimdall.errors import ConfigError, HeimdallError
from heimdall.graph.graph import Graph
from heimdall.inspection import load_networks
from heimdall.models.catalog import CATALOG
from heimdall.runtime.execution.processors import open_processors
from heimdall.system import softgpu
from heimdall.system.cpu import cpu_name
from heimdall.system.priority import cores_awake
from heimdall.vocabulary.enums import Precision

ROUNDS = 21


def tune_family(
    engine: OpenCLEngine, graphs: Sequence[Graph], rounds: int, precisions: Sequence[str]
) -> Path:
    """Tune the networks and write the table; says on standard output what each gained.

    Raises ConfigError where the device belongs to no family.
    """
    name = family(engine.traits, hardware=engine.hardware)
    if not name:
        raise ConfigError(f"{engine.describe()['device']} belongs to no family of devices")
    measured: set[str] = set()
    with ProgressBars() as progress:
        for precision in precisions:
            for graph in graphs:
                storing = engine.in_precision(Precision(precision))
                measured |= _tune(storing, graph, rounds, progress)
    told = engine.describe()
    origin = {
        "machine": f"{cpu_name()}, {os.cpu_count()} cores",
        "device": f"{told['device']}, {told['mode']}",
        "driver": told["driver"],
        "date": datetime.date.today().isoformat(),
        "rounds": rounds,
        "networks": [graph.name for graph in graphs],
        "layers": len(measured),
    }
    return write_family(name, engine.tuning.chosen(sorted(measured)), origin)


def _tune(engine: OpenCLEngine, graph: Graph, rounds: int, progress: ProgressBars) -> set[str]:
    def tell(done: int, total: int) -> None:
        progress(f"tuning {graph.name}", done, total)

    found = engine.tune(graph, tell, rounds=rounds)
    changed = sum(each.after_ns < each.before_ns for each in found.values())
    before, after = (sum(each[index] for each in found.values()) / 1e6 for index in (0, 1))
    wrong = sum(each.wrong for each in found.values())
    print(
        f"{graph.name}: {changed} of {len(found)} layers, {before:.2f} -> {after:.2f} ms"
        + (f"; {wrong} kernels computed something else" if wrong else "")
    )
    return set(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help="default: all bundled networks")
    parser.add_argument("--cores", type=int, default=1, help="of a software GPU")
    parser.add_argument("--device", help="as of `heimdall run`")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each is timed")
    parser.add_argument("--precision", action="append", choices=["fp32", "fp16"])
    parser.add_argument("--shape", action="append", default=[], type=parse_shape)
    arguments = parser.parse_args()
    shapes: dict[str, Any] = dict(arguments.shape)
    try:
        graphs = [
            graph
            for model in arguments.models or list(CATALOG)
            for graph in load_networks(model, shapes if model not in CATALOG else None)
        ]
        with (
            cores_awake(),
            open_processors(arguments.device, softgpu.together(arguments.cores)) as there,
        ):
            if not isinstance(there.gpu, OpenCLEngine):
                raise ConfigError(f"the engine {there.gpu.name} has no kernels to choose from")
            precisions = arguments.precision or ["fp32"]
            path = tune_family(there.gpu, graphs, max(1, arguments.rounds), precisions)
    except HeimdallError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"written: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
