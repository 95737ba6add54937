"""3-D models, .glb and .gltf: read, and moved by each of their animations."""

from __future__ import annotations

import base64
import json
import struct
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from heimdall.render.content import reading
from heimdall.render.content.posing import placed
from heimdall.system import paths
from tests.fuzz.damage import in_bytes, in_json, pick
from tests.fuzz.target import FindingError, Target
from tests.render.content.conftest import COORDINATES, SQUARE, TWO, Writer

TIMES_S = (0.0, 0.4, -1.0, 1e9)
_BUNDLED = ("lamp", "side-table")
_NAMES = ("square", "bones", *_BUNDLED)


class Fuzzed(Target):
    """One file, read again and again."""

    suffix = ".glb"

    @staticmethod
    def damaged(random: np.random.Generator) -> tuple[str, bytes]:
        name = pick(_NAMES if random.random() < 0.2 else _NAMES[:2], random)
        document, binary = _seed(name)
        if random.random() < 0.15:
            return name, in_bytes(_container(json.dumps(document).encode(), binary), random)
        if random.random() < 0.2:  # with its bytes as text, in no container
            inline = {"byteLength": len(binary), "uri": _uri(binary)}
            return name, in_json({**document, "buffers": [inline]}, random)
        text = in_json(document, random)
        return name, _container(text, in_bytes(binary, random) if random.random() < 0.2 else binary)

    def run(self, name: str, raw: bytes) -> str:
        file = self.folder / f"damaged{self.suffix}"
        file.write_bytes(raw)
        self.stage = "read"
        model = reading.read(file, largest=256)
        self.stage = "move"
        for animation in (None, *model.animations.values()):
            for time_s in TIMES_S:
                stance = model.skeleton.stance(animation, time_s)
                for part in model.parts:
                    if len(placed(part, stance, model.skins)) != len(part.positions):
                        raise FindingError("vertices are lost when it moves")
        if not (np.isfinite(model.low).all() and np.isfinite(model.high).all()):
            raise FindingError(f"it reaches from {model.low} to {model.high}")
        for part in model.parts:
            if len(part.indices) and part.indices.max() >= len(part.positions):
                raise FindingError("an index lies beyond the vertices")
        return "read"


@cache
def _seed(name: str) -> tuple[dict[str, Any], bytes]:
    if name in _BUNDLED:
        data = (paths.ASSETS / "content" / f"{name}.glb").read_bytes()
        size = struct.unpack_from("<I", data, 12)[0]
        return json.loads(data[20 : 20 + size]), data[28 + size :]
    with tempfile.TemporaryDirectory() as folder:
        writer = _square(Path(folder)) if name == "square" else _bones(Path(folder))
    length = {"byteLength": len(writer.content)}
    return {**writer.document, "buffers": [length]}, writer.content


def _square(folder: Path) -> Writer:
    writer = Writer(folder)
    looks = ("baseColorTexture", "metallicRoughnessTexture")
    pixels = np.arange(4 * 4 * 4, dtype=np.uint8).reshape(4, 4, 4)
    surface: dict[str, Any] = {look: {"index": writer.picture(pixels)} for look in looks}
    surface |= {"baseColorFactor": [0.5, 1.0, 0.2, 1.0], "metallicFactor": 0.1}
    material = {"pbrMetallicRoughness": surface, "alphaMode": "MASK", "alphaCutoff": 0.4}
    material |= {"normalTexture": {"index": 0, "scale": 0.5}, "emissiveFactor": [0.1, 0.0, 0.2]}
    moved = [0.1 * SQUARE]
    writer.mesh(SQUARE, TWO, material, targets=moved, TEXCOORD_0=writer.array(COORDINATES))
    writer.document["nodes"] = [
        {"mesh": 0, "children": [1], "scale": [1.0, 2.0, 1.0]},
        {"mesh": 0, "translation": [0.5, 0.0, -1.0], "rotation": [0.0, 0.6, 0.0, 0.8]},
    ]
    weights = {"input": writer.array([0.0, 0.5, 1.0]), "output": writer.array([0.0, 1.0, 0.0])}
    away = {"input": weights["input"], "output": writer.array(SQUARE[:3]), "interpolation": "STEP"}
    channels = [
        {"sampler": 0, "target": {"node": 0, "path": "weights"}},
        {"sampler": 1, "target": {"node": 1, "path": "translation"}},
    ]
    animation = {"name": "wave", "samplers": [weights, away], "channels": channels}
    writer.document["animations"] = [animation]
    return writer


def _bones(folder: Path) -> Writer:
    writer = Writer(folder)
    joints = writer.array([[0, 1, 0, 0]] * 4, "u1")
    weights = writer.array([[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0]])
    writer.mesh(SQUARE, TWO, JOINTS_0=joints, WEIGHTS_0=weights)
    writer.bones()
    return writer


def _container(text: bytes, binary: bytes) -> bytes:
    text += b" " * (-len(text) % 4)
    binary += bytes(-len(binary) % 4)
    length = 12 + 8 + len(text) + 8 + len(binary)
    head = struct.pack("<4sIIII", b"glTF", 2, length, len(text), 0x4E4F534A)
    return head + text + struct.pack("<II", len(binary), 0x004E4942) + binary


def _uri(binary: bytes) -> str:
    return "data:application/octet-stream;base64," + base64.b64encode(binary).decode()
