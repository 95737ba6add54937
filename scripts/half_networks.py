"""Stores networks with weights in float16, half as large: half_networks.py FOLDER [--to FOLDER]

Every network of NETWORKS that is in FOLDER as float32 ONNX is written to assets/models, or where
--to says, and its digest printed, as NOTICE.md needs it. What they compute stays in float32: the
weights of most were rounded to half precision when they were published, so these are the same
networks to the last bit; for the others it is said how far rounding moved a weight. The same
input gives the same file.
"""

from __future__ import annotations

import argparse
import hashlib
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import numpy_helper

from heimdall.graph.graph import load_graph
from heimdall.lab.exits.storing import halves, keep_outputs, narrow, refer
from heimdall.system.paths import replace_file

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Stored:
    """A network to store: its file, and the outputs to keep of it (none: all of them)."""

    file: str
    outputs: tuple[str, ...] = ()
    exact: bool = True  # its weights are halves already; it is an error if they are not
    beside: str = ""  # the network, stored before it, that most of its weights are of
    original: str = ""  # its file's name where it comes from; its own by default


NETWORKS = (
    Stored("detect_nanodet_416.onnx"),
    Stored("seg_selfie_256.onnx"),
    Stored("pose_movenet_lightning_192.onnx"),
    Stored("hand_palm_lite_192.onnx"),
    Stored("hand_landmark_lite_224.onnx"),
    Stored("face_mesh_192.onnx"),
    Stored("iris_64.onnx", exact=False),
    # without the mask of the person (Identity_2), which costs more than the joints
    Stored("pose_landmark_full_256.onnx", ("Identity", "Identity_1", "Identity_3", "Identity_4")),
    Stored("text_ppocr_cls_dynamic.onnx", exact=False),
    Stored("ppocrv4_det_dynamic.onnx", exact=False),
    Stored("text_ppocrv4_rec_dynamic.onnx", exact=False),
    Stored("centerface_dynamic.onnx", exact=False),
    Stored("centerface_exits_dynamic.onnx", beside="centerface_dynamic.onnx"),
    Stored("speech_silero_16k.onnx", exact=False, original="silero_vad_16k_op15.onnx"),
)


def store(network: Stored, model: onnx.ModelProto, folder: Path) -> float:
    """Change ``model`` into what is stored in ``folder``; returns how far rounding moved a weight
    at most, over the largest of its tensor. Raises ValueError if an exact network is not."""
    if network.outputs:
        keep_outputs(model, network.outputs)
    del model.graph.value_info[:]  # sizes that readers infer
    if network.beside:
        _take_weights(model, folder / network.beside)
    moved = narrow(model, halves(model) if network.beside else None)
    if network.exact and moved:
        raise ValueError(
            f"{network.file} has weights that are no halves (they move by {moved:.1e})"
        )
    onnx.checker.check_model(model)
    if network.beside:
        refer(model, folder / network.beside)
    return moved


def _take_weights(model: onnx.ModelProto, path: Path) -> None:
    """Those of the network at ``path``, as it was stored."""
    constants = load_graph(path).constants
    for item in model.graph.initializer:
        if item.name in constants:
            item.CopyFrom(numpy_helper.from_array(constants[item.name], item.name))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--to", type=Path, default=ROOT / "assets" / "models")
    arguments = parser.parse_args()
    for network in NETWORKS:
        source = arguments.folder / (network.original or network.file)
        if not source.is_file():
            print(f"{source.name}: not in {arguments.folder}")
            continue
        model = onnx.load(source)
        moved = store(network, model, arguments.to)
        content = model.SerializeToString(deterministic=True)
        replace_file(arguments.to / network.file, content)
        exact = "exact" if not moved else f"weights moved by {moved:.1e} at most"
        sizes = f"{source.stat().st_size / 1e6:.2f} -> {len(content) / 1e6:.2f} MB"
        print(f"{network.file}: {sizes}, {exact}, sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
