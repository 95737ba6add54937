"""What a preempted network keeps, cut at critical nodes (Pantheon, MobiSys '24, Fig. 6).

    python -m benchmarks.slicing                 # bytes, of graphs alone
    python -m benchmarks.slicing --time          # and what merging light chunks saves

Compares three ways to cut each network of Table 1: between critical nodes with light layers merged
into the heavy ones before them; and uniformly, into as many chunks of the same number of layers, or
of the same work. (The paper does not say which of the two it is compared with.) Bytes are of the
tensors alive at each cut, on average.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median

from benchmarks.architectures import NAMES, model_path
from heimdall.analyzer.partition import partition
from heimdall.analyzer.profiler import measure_ops
from heimdall.graph.costs import node_flops
from heimdall.graph.cuts import critical, held
from heimdall.graph.graph import Graph, load_graph
from heimdall.graph.samples import sample_inputs
from heimdall.runtime.execution.processors import open_processors
from heimdall.system import softgpu
from heimdall.vocabulary.plans import StagePlan

HEAVY = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
ROUNDS = 15


def slices(graph: Graph) -> list[int]:
    """The nodes before which one tensor is alive."""
    return list(critical(held(graph, [[node.name] for node in graph.nodes])))


def merged(graph: Graph, cuts: Sequence[int]) -> list[int]:
    """Those before a chunk that has a convolution or a fully connected layer."""
    edges = [*cuts, len(graph.nodes)]
    return [
        start
        for start, end in pairwise(edges)
        if any(node.op_type in HEAVY for node in graph.nodes[start:end])
    ]


def uniform(graph: Graph, chunks: int) -> list[int]:
    """As many chunks of the same number of nodes."""
    return sorted({round(len(graph.nodes) * n / chunks) for n in range(1, chunks)} - {0})


def by_work(graph: Graph, chunks: int) -> list[int]:
    """As many chunks of about the same work."""
    done, cuts, total = 0, list[int](), sum(node_flops(graph, node) for node in graph.nodes)
    for index, node in enumerate(graph.nodes):
        if index and done >= total * (len(cuts) + 1) / chunks:
            cuts.append(index)
        done += node_flops(graph, node)
    return cuts


def mean_mb(graph: Graph, cuts: Sequence[int]) -> float:
    """Alive at a cut, on average."""
    states = held(graph, [[node.name] for node in graph.nodes])
    return fmean(states[cut].bytes for cut in cuts) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--time", action="store_true", help="run chunk by chunk, too")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        graphs = {name: load_graph(model_path(name, Path(folder))) for name in options.only}
    print(
        "| network | layers | slices | chunks | MB, critical nodes | same layers | less, % | "
        "same work | less, % |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    )
    for name, graph in graphs.items():
        found = slices(graph)
        cuts = merged(graph, found)
        chunks = len(cuts) + 1
        ours = mean_mb(graph, cuts)
        cells = [f"{name} | {len(graph.nodes)} | {len(found) + 1} | {chunks} | {ours:.2f}"]
        for other in (uniform(graph, chunks), by_work(graph, chunks)):
            theirs = mean_mb(graph, other)
            cells.append(f"{theirs:.2f} | {100 * (1 - ours / theirs):.1f}")
        print(f"| {' | '.join(cells)} |")
    if options.time:
        _time(graphs)


def _time(graphs: Mapping[str, Graph]) -> None:
    """Run networks slice by slice, and in chunks of merged slices, in turns."""
    with open_processors(None, softgpu.together(1)) as processors:
        print("\n| network | slices | ms | chunks | ms | faster, % |\n|---|--:|--:|--:|--:|--:|")
        for name, graph in graphs.items():
            network = processors.gpu.load(graph)
            op_ns = measure_ops(network).op_ns
            places = critical(network.held())
            plan = StagePlan(op_ns, (False,) * len(op_ns), 0, 0, critical=places)
            ways = [
                list(pairwise((0, *places, len(op_ns)))),
                [(each.start, each.end) for each in partition(plan, 1, "critical")],
            ]
            state, inputs = network.new_state(), sample_inputs(graph)
            times: list[list[int]] = [[], []]
            for _ in range(ROUNDS):
                for ranges, taken in zip(ways, times, strict=True):
                    network.write(state, inputs)
                    taken.append(sum(network.run(state, start, end) for start, end in ranges))
            (plain, together), (apart_ms, ms) = ways, [median(each) / 1e6 for each in times]
            print(
                f"| {name} | {len(plain)} | {apart_ms:.2f} | {len(together)} | {ms:.2f} | "
                f"{100 * (apart_ms / ms - 1):.1f} |",
                flush=True,
            )
            network.close()


if __name__ == "__main__":
    main()
