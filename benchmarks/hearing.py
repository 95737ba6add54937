"""What it takes to listen, on one thread.

    python -m benchmarks.hearing
    python -m benchmarks.hearing --windows 2000 --runs 5

Each bundled network that hears, in onnxruntime with one thread, with what its pipeline does before
and after, on noise: what a window takes, and what that makes of 16 ms of sound, of which networks
that hear have to keep up with all. Medians of each run, and the 95th percentile of all windows.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
import onnxruntime as ort

from heimdall.capture.sound import Sound
from heimdall.graph.graph import load_graph
from heimdall.models.catalog import open_pipeline
from heimdall.models.memory import Memory
from heimdall.models.walk import Tensors, run_pipeline
from heimdall.vocabulary.hearing import BUNDLED

PART_MS = 16


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--windows", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    print("| network | windows a second | ms a window, by run | p95 | ms for 16 ms of sound |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, hearing in BUNDLED.items():
        runs = [_run(name, arguments.windows) for _ in range(arguments.runs)]
        medians = sorted(statistics.median(run) for run in runs)
        p95 = np.percentile(np.concatenate(runs), 95)
        share = statistics.median(medians) * hearing.rate_hz * PART_MS / 1e3
        print(
            f"| {name} | {hearing.rate_hz:g} | {statistics.median(medians):.3f} "
            f"({medians[0]:.3f} to {medians[-1]:.3f}) | {p95:.3f} | {share:.3f} |"
        )


def _run(name: str, windows: int) -> list[float]:
    """What each of so many windows takes, in ms."""
    pipeline, hearing = open_pipeline(name), BUNDLED[name]
    (network,) = pipeline.networks
    graph = load_graph(network.path, network.shapes or None)
    pipeline.bind([graph])
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = 1
    session = ort.InferenceSession(graph.serialized, settings)
    names = [output.name for output in session.get_outputs()]
    memory = Memory(graph, network.state)
    random = np.random.default_rng(0)

    def infer(stage: int, inputs: Tensors) -> Tensors:
        given = {name: np.asarray(each) for name, each in inputs.items()}
        return dict(zip(names, session.run(None, given), strict=True))

    taken = []
    for number in range(windows):
        samples = random.standard_normal(hearing.window).astype(np.float32) * 0.1
        sound = Sound(samples, hearing.rate, number, 0)
        began = time.perf_counter()
        run_pipeline(pipeline, sound, infer, memory=memory)  # type: ignore[arg-type]
        taken.append(1e3 * (time.perf_counter() - began))
    return taken


if __name__ == "__main__":
    main()
