"""Trains the network of the model "keywords": python -m scripts.keywords FOLDER [--to FILE]

Speech is made by espeak-ng (Debian package of that name): ten words, other words, words that there
are not and sentences, in many voices, with noise, echo and microphones of all kinds
(scripts/keywords_data.py). It is kept in FOLDER, for other seeds. What is written is an ONNX file
that takes a second of sound. Ops of the network make its logarithmic mel spectrum, from a few
vectors that any ONNX runtime folds when it loads the file; convolutions over time follow, each in
one channel and then across all (Zhang et al. 2017, arXiv:1711.07128, DS-CNN).

Tested on speakers and other words that were never heard in training. PyTorch is needed (the extra
"learn"); one thread, one seed, one version of it and of espeak-ng give the same file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from torch.nn import functional

from heimdall.graph.graph import graph_from_model
from heimdall.lab.exits.storing import narrow
from heimdall.models.keywords import Keywords
from heimdall.system.paths import replace_file
from scripts import spoken
from scripts.keywords_data import (
    CLASSES,
    KEYWORDS,
    OTHER,
    OTHERS,
    UNHEARD,
    WINDOW,
    Pool,
    windows_of,
)
from scripts.spoken import HELD_OUT, PEOPLE, PEOPLE_HELD_OUT, RATE, SPEAKERS

HOP, FRAME, BANDS = 160, 320, 40  # samples; a second has 99 frames
FLOOR = 1e-6  # of the power of a band
LOW_HZ, HIGH_HZ = 60.0, 7600.0
CHANNELS, KERNEL, STRIDES = 64, 9, (2, 1, 2, 1)
BATCH, RATE_OF_LEARNING, DECAY, SMOOTHED = 128, 4e-3, 0.02, 0.05


# --- the network -----------------------------------------------------------------------------


def vectors() -> dict[str, np.ndarray]:
    """What the spectrum is made of: cosines and sines of whole turns a frame, in mels."""
    turns = np.arange(FRAME // 2 + 1)
    hz = turns * RATE / FRAME
    edges = np.linspace(_mels(LOW_HZ), _mels(HIGH_HZ), BANDS + 2)
    made = {
        "time": np.arange(FRAME)[:, None],
        "turns": np.tile(2 * np.pi * turns / FRAME, 2)[None],
        "phase": np.repeat([0, np.pi / 2], len(turns))[None],
        "window": np.hanning(FRAME + 1)[:-1, None],
        "mels": np.tile(_mels(hz), 2)[:, None],
        "bands": edges[None, 1:-1],
        "apart": np.array(edges[1] - edges[0]),
        "one": np.array(1.0),
        "floor": np.array(FLOOR),
        "scale": np.array(0.5),
    }
    return {name: each.astype(np.float32) for name, each in made.items()}


def _mels(hz: Any) -> Any:
    return 2595 * np.log10(1 + np.asarray(hz) / 700)


class Spectrum(nn.Module):
    """(n, 16000) to (n, 40, 99): logarithms of the power, in 40 bands, of 20 ms every 10 ms."""

    def __init__(self) -> None:
        super().__init__()
        v = {name: torch.from_numpy(each) for name, each in vectors().items()}
        self.waves = torch.cos(v["time"] @ v["turns"] - v["phase"]) * v["window"]
        self.bands = functional.relu(v["one"] - (v["mels"] - v["bands"]).abs() / v["apart"])
        assert (self.bands.sum(0) > 0.1).all()

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        hops = sound.reshape(-1, WINDOW // HOP, HOP)
        power = (torch.cat([hops[:, :-1], hops[:, 1:]], 2) @ self.waves) ** 2
        found = torch.log(power @ self.bands + FLOOR)
        return ((found - found.mean((1, 2), keepdim=True)) * 0.5).transpose(1, 2)


class Normed(nn.Module):
    """A convolution over time and its batch norm."""

    def __init__(self, given: int, made: int, side: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv1d(given, made, side, stride, side // 2, groups=groups, bias=False)
        self.norm = nn.BatchNorm1d(made)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.conv(x))

    def folded(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights, for pictures one pixel high, and bias of the one convolution that both are."""
        norm = self.norm
        scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        weights = self.conv.weight * scale[:, None, None]
        bias = norm.bias - norm.running_mean * scale
        return weights[:, :, None].detach().numpy(), bias.detach().numpy()


class Block(nn.Module):
    """A convolution in each channel, one across them, and a shortcut where the size stays."""

    def __init__(self, stride: int) -> None:
        super().__init__()
        self.along = Normed(CHANNELS, CHANNELS, KERNEL, stride, CHANNELS)
        self.across = Normed(CHANNELS, CHANNELS, 1)
        self.shortcut = stride == 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made = self.across(functional.relu(self.along(x)))
        return functional.relu(made + x if self.shortcut else made)


class Network(nn.Module):
    """(n, 40, 99) to (n, classes)."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = Normed(BANDS, CHANNELS, 5)
        self.blocks = nn.ModuleList(Block(stride) for stride in STRIDES)
        self.last = nn.Linear(CHANNELS, len(CLASSES))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.stem(x))
        for block in self.blocks:
            x = block(x)
        return self.last(x.mean(2))


def train(network: Network, spectra: torch.Tensor, labels: torch.Tensor, epochs: int) -> None:
    """AdamW with one cycle, on spectra that are shifted, and of which parts are left out."""
    optimiser = torch.optim.AdamW(network.parameters(), RATE_OF_LEARNING, weight_decay=DECAY)
    steps = epochs * -(-len(spectra) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE_OF_LEARNING, total_steps=steps)
    for epoch in range(1, epochs + 1):
        network.train()
        began, total = time.monotonic(), 0.0
        for chosen in torch.randperm(len(spectra)).split(BATCH):
            scores = network(_varied(spectra[chosen].float()))
            loss = functional.cross_entropy(scores, labels[chosen], label_smoothing=SMOOTHED)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            total += float(loss.detach()) * len(chosen)
        took = time.monotonic() - began
        _say(f"epoch {epoch}/{epochs}: loss {total / len(spectra):.3f}, {took:.0f} s")


def _varied(spectra: torch.Tensor) -> torch.Tensor:
    """A few bands and a few frames of all of them are silenced (Park et al. 2019, SpecAugment)."""
    spectra = spectra.roll((int(torch.randint(-1, 2, ())), int(torch.randint(-3, 4, ()))), (1, 2))
    for axis, most in ((1, 6), (2, 10)):
        wide = int(torch.randint(0, most + 1, ()))
        start = int(torch.randint(0, spectra.shape[axis] - wide, ()))
        spectra.narrow(axis, start, wide).zero_()
    return spectra


# --- the ONNX file ---------------------------------------------------------------------------


class Writer:
    """Nodes and weights, one layer after the other; a node has the name of what it makes."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}

    def add(self, kind: str, given: Sequence[str], made: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, list(given), [made], made, **attributes))
        return made

    def conv(self, layer: Normed, name: str, given: str) -> str:
        conv, names = layer.conv, [f"{name}/weight", f"{name}/bias"]
        self.weights.update(zip(names, layer.folded(), strict=True))
        side = conv.kernel_size[0]
        shape = {"kernel_shape": [1, side], "strides": [1, conv.stride[0]]}
        pads = [0, side // 2, 0, side // 2]
        return self.add("Conv", [given, *names], name, **shape, pads=pads, group=conv.groups)

    def spectrum(self, sound: str) -> str:
        """The ops of ``Spectrum``."""
        self.weights |= vectors()
        self.weights |= {name: np.array(each) for name, each in _SHAPES.items()}
        self.add("MatMul", ["time", "turns"], "angles")
        self.add("Cos", [self.add("Sub", ["angles", "phase"], "shifted")], "cosines")
        self.add("Mul", ["cosines", "window"], "waves")
        self.add("Abs", [self.add("Sub", ["mels", "bands"], "away")], "distance")
        self.add("Sub", ["one", self.add("Div", ["distance", "apart"], "steps")], "slopes")
        self.add("Relu", ["slopes"], "triangles")
        self.add("Reshape", [sound, "hops"], "blocks")
        self.add("Slice", ["blocks", "begin", "but_last", "axis"], "earlier")
        self.add("Slice", ["blocks", "second", "end", "axis"], "later")
        self.add(
            "MatMul", [self.add("Concat", ["earlier", "later"], "frames", axis=2), "waves"], "w"
        )
        self.add("MatMul", [self.add("Mul", ["w", "w"], "power"), "triangles"], "energies")
        self.add("Log", [self.add("Add", ["energies", "floor"], "floored")], "logarithms")
        self.add("ReduceMean", ["logarithms"], "mean", axes=[1, 2], keepdims=1)
        self.add("Mul", [self.add("Sub", ["logarithms", "mean"], "centred"), "scale"], "scaled")
        self.add("Transpose", ["scaled"], "turned", perm=[0, 2, 1])
        return self.add("Unsqueeze", ["turned", "high"], "spectrum")


_SHAPES = {
    "hops": [-1, WINDOW // HOP, HOP],
    "begin": [0],
    "second": [1],
    "but_last": [WINDOW // HOP - 1],
    "end": [WINDOW // HOP],
    "axis": [1],
    "high": [2],
}


def to_onnx(network: Network) -> onnx.ModelProto:
    """The network in float16 storage, with its classes in the metadata."""
    writer = Writer()
    x = writer.add(
        "Relu", [writer.conv(network.stem, "stem", writer.spectrum("sound"))], "stem/relu"
    )
    for number, block in enumerate(network.blocks, 1):
        name, before = f"block{number}", x
        x = writer.add("Relu", [writer.conv(block.along, f"{name}/along", x)], f"{name}/relu")
        x = writer.conv(block.across, f"{name}/across", x)
        x = writer.add("Add", [x, before], f"{name}/sum") if block.shortcut else x
        x = writer.add("Relu", [x], name)
    x = writer.add("Flatten", [writer.add("GlobalAveragePool", [x], "pool")], "features")
    for part in ("weight", "bias"):
        writer.weights[f"last/{part}"] = getattr(network.last, part).detach().numpy()
    x = writer.add("Gemm", [x, "last/weight", "last/bias"], "scores", transB=1)
    writer.add("Softmax", [x], "probabilities", axis=1)
    given = helper.make_tensor_value_info("sound", TensorProto.FLOAT, [1, WINDOW])
    made = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [1, len(CLASSES)])
    weights = [numpy_helper.from_array(each, name) for name, each in writer.weights.items()]
    graph = helper.make_graph(writer.nodes, "keywords", [given], [made], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, {"classes": json.dumps(CLASSES)})
    names = {name for name in writer.weights if "/" in name}
    narrow(model, names)  # the vectors of the spectrum are exact
    onnx.checker.check_model(model)
    return model


# --- how good it is --------------------------------------------------------------------------


def probabilities(model: onnx.ModelProto, windows: np.ndarray) -> np.ndarray:
    """Of each window (n, 16000), those of all classes, in the file that is written."""
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), settings)
    given = (np.ascontiguousarray(each[None]) for each in windows)
    return np.concatenate([session.run(None, {"sound": each})[0] for each in given])


def found_in(model: onnx.ModelProto, stream: np.ndarray) -> list[tuple[float, str]]:
    """When (seconds, the end of the window) a word is found in running sound, as apps get it."""
    pipeline = Keywords()
    pipeline.bind([graph_from_model(model, "keywords")])
    hop = pipeline.hears.step
    windows = np.lib.stride_tricks.sliding_window_view(stream, WINDOW)[::hop]
    past, said = None, []
    for number, scores in enumerate(probabilities(model, windows)):
        labels, past = pipeline.follow(scores, past)
        said += [((number * hop + WINDOW) / RATE, label.name) for label in labels]
    return said


def streamed(model: onnx.ModelProto, pool: Pool, random: np.random.Generator, count: int) -> str:
    """Words in running sound: how many are found once, more than once, or taken for another."""
    right = wrong = again = 0
    for _ in range(count):
        words = [str(each) for each in random.choice(KEYWORDS, 4)]
        parts = [np.zeros(RATE)]
        for word in words:
            parts += [pool.draw(random, word), np.zeros(int(random.integers(RATE // 2, 2 * RATE)))]
        parts.append(np.zeros(RATE))
        stream = spoken.recorded(random, np.concatenate(parts), least_db=10)
        ends = np.cumsum([len(part) for part in parts])[1:-1:2] / RATE
        heard = found_in(model, stream)
        for word, end in zip(words, ends, strict=True):
            near = [name for at, name in heard if -0.4 < at - end < 0.9]
            right, again = right + (word in near), again + (near.count(word) > 1)
            wrong += any(name != word for name in near)
    said = 4 * count
    return f"in running sound {right / said:.3f} of {said}, others {wrong}, twice {again}"


def false_alarms(
    model: onnx.ModelProto, pool: Pool, random: np.random.Generator, minutes: float
) -> str:
    """Words that are found in speech which has none of them."""
    alarms, seconds = 0, 0.0
    while seconds < 60 * minutes:
        parts: list[np.ndarray] = []
        while sum(map(len, parts)) < 30 * RATE:
            parts += [pool.draw(random, ""), np.zeros(int(random.integers(RATE // 10, RATE)))]
        stream = spoken.recorded(random, np.concatenate(parts))
        alarms, seconds = alarms + len(found_in(model, stream)), seconds + len(stream) / RATE
    return f"{alarms / (seconds / 60):.2f} false alarms a minute in {seconds / 60:.0f} minutes"


def judged(model: onnx.ModelProto, speakers: Sequence[str], people: Sequence[str]) -> str:
    """How it does on these voices, which say other words than were heard in training."""
    pool = Pool(speakers, people, UNHEARD, 60, 3)
    sounds, labels = map(np.array, zip(*windows_of(pool, 3000, 4), strict=True))
    right = probabilities(model, sounds).argmax(1) == labels
    random = np.random.default_rng(5)
    return (
        f"{right.mean():.4f} of windows right, {right[labels < OTHER].mean():.4f} of those with a "
        f"keyword; {streamed(model, pool, random, 60)}; {false_alarms(model, pool, random, 15)}"
    )


# --- all of it -------------------------------------------------------------------------------


def spectra_of(pool: Pool, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Spectra (n, 40, 99) in float16 of so many windows, and their classes."""
    spectrum, spectra, labels = Spectrum(), np.empty((count, BANDS, 99), np.float16), []
    for number, (sound, label) in enumerate(windows_of(pool, count, seed)):
        with torch.no_grad():
            spectra[number] = spectrum(torch.from_numpy(sound[None])).numpy()
        labels.append(label)
    return spectra, np.array(labels)


def kept(path: Path, make: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """What is in a file, made where it is not there yet."""
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        np.savez(path, **make())
        _say(f"{path.name}: made in {time.monotonic() - began:.0f} s")
    with np.load(path) as stored:
        return dict(stored)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--to", type=Path, default=Path("out") / "keywords_16k.onnx")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--windows", type=int, default=30000)
    parser.add_argument("--voices", type=int, default=500, help="utterances of each word")
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    torch.set_num_threads(1)

    def made() -> dict[str, np.ndarray]:
        pool = Pool(SPEAKERS, PEOPLE, OTHERS, arguments.voices, 1)
        spectra, labels = spectra_of(pool, arguments.windows, 2)
        return {"spectra": spectra, "labels": labels}

    data = kept(arguments.folder / "train.npz", made)
    network = Network()
    train(network, *map(torch.from_numpy, (data["spectra"], data["labels"])), arguments.epochs)
    network.eval()
    model = to_onnx(network)
    content = model.SerializeToString(deterministic=True)
    replace_file(arguments.to, content)
    count = sum(each.numel() for each in network.parameters())
    print(
        f"{arguments.to}: {count} parameters, {len(content) / 1000:.0f} kB, "
        f"sha256 {hashlib.sha256(content).hexdigest()}"
    )
    print(f"voices of espeak-ng that were never heard: {judged(model, HELD_OUT, ())}")
    print(f"a person of flite that was never heard: {judged(model, (), PEOPLE_HELD_OUT)}")


if __name__ == "__main__":
    main()
