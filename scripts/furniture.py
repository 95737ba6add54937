"""Models the bundled furniture: ``python -m scripts.furniture [FOLDER]`` writes assets/content.

Everything is made here, of rounded boxes (`scripts/rounded.py`) and turned parts, in metres and
at true size, and is in the public domain (CC0 1.0). What is upholstered has a material `fabric`,
whose picture an app may replace: ``scene.model("couch.glb", ..., texture={"fabric": image})``.
How open each place is to the room's light is in the colours of the vertices.
"""

from __future__ import annotations

import argparse
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from apps.content.weave import weave
from heimdall.system.paths import ASSETS, replace_file
from scripts.rounded import Part, build

_TILE = 0.62  # metres that a picture of the fabric covers
_TEXELS = 192  # of a side of the fabric's picture
_FLOAT, _BYTE, _SHORT = 5126, 5121, 5123
_MIRRORED = 33648
_STICK = (1, 3, 1)  # cells of an upright one
_GENERATOR = "Heimdall, scripts/furniture.py"


@dataclass(frozen=True)
class Piece:
    """Triangles of one material: positions and unit normals (n, 3), openness (n,) from 0 to 1,
    triangles (m, 3), counter-clockwise from outside; ``uvs`` (n, 2), where it has a picture."""

    material: str
    positions: np.ndarray
    normals: np.ndarray
    openness: np.ndarray
    triangles: np.ndarray
    uvs: np.ndarray | None = None


# name: colour (sRGB), metallic, roughness, how much it shines by itself
MATERIALS: dict[str, tuple[tuple[int, int, int], float, float, float]] = {
    "fabric": ((255, 255, 255), 0.0, 0.95, 0.0),
    "oak": ((166, 122, 82), 0.0, 0.6, 0.0),
    "walnut": ((92, 66, 48), 0.0, 0.55, 0.0),
    "brass": ((196, 160, 98), 1.0, 0.35, 0.0),
    "shade": ((236, 222, 196), 0.0, 0.95, 0.2),
    "cream": ((222, 210, 186), 0.0, 0.9, 0.0),
    "red": ((150, 70, 58), 0.0, 0.9, 0.0),
    "blue": ((70, 96, 112), 0.0, 0.9, 0.0),
}


def couch_parts() -> list[Part]:
    """A three-seat couch, 2.1 m wide, in few triangles: llvmpipe takes a microsecond for each,
    however small. What hides the rest comes first, so that most hidden pixels fail the depth
    test before they are shaded."""
    parts = []
    for x in (-0.561, 0, 0.561):
        parts.append(
            Part((x, 0.66, -0.215), (0.545, 0.42, 0.18), 0.075, 0.030, tilt=14, cells=(2, 2, 1))
        )
        parts.append(Part((x, 0.395, 0.055), (0.555, 0.16, 0.76), 0.055, 0.022, cells=(2, 1, 2)))
    for x in (-0.945, 0.945):
        parts.append(Part((x, 0.395, 0.0), (0.21, 0.51, 0.90), 0.085, 0.008, cells=(1, 2, 2)))
    parts.append(Part((0, 0.235, 0.0), (1.90, 0.19, 0.84), 0.04, cells=(4, 1, 1)))  # frame
    parts.append(Part((0, 0.50, -0.375), (1.90, 0.62, 0.19), 0.08, tilt=7, cells=(4, 2, 1)))
    for x in (-0.90, 0.90):
        for z in (-0.36, 0.36):
            leg = Part((x, 0.075, z), (0.055, 0.15, 0.055), 0, wood=True, cells=(1, 1, 1), bends=0)
            parts.append(leg)
    return parts


def couch() -> list[Piece]:
    """Three seats, 2.10 m wide."""
    return boxes([("walnut" if part.wood else "fabric", part) for part in couch_parts()])


def chair() -> list[Piece]:
    """For a dining table: 0.46 m wide, its seat 0.48 m high."""
    parts = [
        ("fabric", Part((0, 0.445, 0.0), (0.45, 0.075, 0.44), 0.032, 0.012, cells=(2, 1, 2))),
        ("fabric", Part((0, 0.70, -0.225), (0.42, 0.28, 0.05), 0.022, 0.008, tilt=8)),
        ("oak", Part((0, 0.39, 0.0), (0.40, 0.05, 0.39), 0.008)),
    ]
    for x in (-0.185, 0.185):
        for z in (-0.18, 0.18):
            parts.append(("oak", Part((x, 0.20, z), (0.036, 0.40, 0.036), 0.008, cells=_STICK)))
        post = Part((x, 0.60, -0.228), (0.034, 0.44, 0.028), 0.008, tilt=8, cells=_STICK)
        rail = Part((x, 0.17, 0.0), (0.022, 0.03, 0.36), 0.006, cells=(1, 1, 1))
        parts += [("oak", post), ("oak", rail)]
    return boxes(parts)


def side_table() -> list[Piece]:
    """Round, 0.46 m across and 0.50 m high, on three legs."""
    plate = [(0, 0.472), (0.205, 0.472), (0.228, 0.482), (0.23, 0.492), (0.222, 0.50), (0, 0.50)]
    top = turned("walnut", plate, 36, lambda y: 0.45 if y < 0.48 else 1.0)
    hub = turned("walnut", [(0, 0.43), (0.075, 0.43), (0.085, 0.472)], 20, lambda y: 0.4)
    leg = turned("walnut", [(0, 0), (0.011, 0.0), (0.018, 0.46)], 10, lambda y: 0.95 - 0.9 * y)
    return [top, hub, *(leaning(leg, turn) for turn in (90.0, 210.0, 330.0))]


def lamp() -> list[Piece]:
    """For the floor: 1.50 m high."""
    base = [(0, 0.0), (0.14, 0.0), (0.145, 0.008), (0.135, 0.022), (0.03, 0.03), (0.012, 0.05)]
    foot = turned("brass", [*base, (0.011, 0.70), (0.011, 1.38)], 28)
    around = [(0.20, 1.20), (0.205, 1.20), (0.15, 1.50), (0.146, 1.50), (0.20, 1.20)]
    return [foot, turned("shade", around, 36, lambda y: 0.78 + 0.73 * (y - 1.2))]


def shelf() -> list[Piece]:
    """0.80 m wide, 1.80 m high, five boards, with books and boxes on them."""
    parts = [
        ("oak", _board((x, 0.90, 0), (0.022, 1.80, 0.28), (1, 12, 2))) for x in (-0.389, 0.389)
    ]
    for y in (0.05, 0.48, 0.91, 1.34, 1.78):
        parts.append(("oak", _board((0, y, 0), (0.756, 0.022, 0.276), (8, 1, 3))))
    parts.append(("oak", _board((0, 0.915, -0.134), (0.756, 1.74, 0.008), (8, 16, 1))))
    for x, size in ((-0.18, (0.34, 0.21, 0.24)), (0.20, (0.26, 0.28, 0.22))):
        parts.append(("cream", Part((x, 0.063 + size[1] / 2, 0), size, 0.012)))
    rng = np.random.default_rng(7)
    for floor, low, high in ((0.492, -0.36, 0.08), (0.922, -0.10, 0.36), (1.352, -0.36, 0.22)):
        x = low
        while x < high:
            thick, tall = rng.uniform(0.02, 0.05), rng.uniform(0.19, 0.29)
            size = (thick - 0.002, tall, 0.19)
            book = _board((x + thick / 2, floor + tall / 2, -0.03), size, (1, 2, 1))
            parts.append((("red", "blue", "cream")[int(rng.integers(3))], book))
            x += thick
    return boxes(parts)


PIECES: dict[str, Callable[[], list[Piece]]] = {
    "couch": couch,
    "chair": chair,
    "side-table": side_table,
    "lamp": lamp,
    "shelf": shelf,
}


def boxes(parts: list[tuple[str, Part]]) -> list[Piece]:
    """Rounded boxes of materials: what is seen of them, shaded by one another."""
    mesh = build([part for _, part in parts])
    middles = mesh.positions[mesh.triangles].mean(axis=1)
    nearest = np.abs([part.distance(middles) for _, part in parts]).argmin(axis=0)
    names = np.array([name for name, _ in parts])[nearest]
    found = []
    for name in dict.fromkeys(name for name, _ in parts):
        used, triangles = np.unique(mesh.triangles[names == name], return_inverse=True)
        uvs = mesh.uvs[used] * (1, -1) / _TILE + 0.5 if name == "fabric" else None
        columns = (mesh.positions[used], mesh.normals[used], mesh.openness[used])
        found.append(Piece(name, *columns, triangles.reshape(-1, 3), uvs))
    return found


def turned(
    material: str,
    profile: list[tuple[float, float]],
    sides: int,
    openness: Callable[[float], float] = lambda height: 1.0,
) -> Piece:
    """What a lathe makes of a profile: (radius, height), the outside on the right of its way."""
    turns = np.arange(sides) * (2 * np.pi / sides)
    ring = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    positions, normals, triangles = [], [], []
    for number, ((r, y), (s, z)) in enumerate(pairwise(profile)):
        out = np.array([z - y, r - s]) / np.hypot(z - y, s - r)
        for radius, height in ((r, y), (s, z)):
            positions.append(np.insert(ring * radius, 1, height, axis=1))
            normals.append(np.insert(ring * out[0], 1, out[1], axis=1))
        low = 2 * number * sides + np.arange(sides)
        after = 2 * number * sides + (np.arange(sides) + 1) % sides
        high = after + sides
        if s:
            triangles.append(np.stack([low, low + sides, high], axis=1))
        if r:
            triangles.append(np.stack([low, high, after], axis=1))
    points = np.concatenate(positions)
    open_ = np.array([openness(height) for height in points[:, 1]])
    return Piece(material, points, np.concatenate(normals), open_, np.concatenate(triangles))


def leaning(leg: Piece, turn: float) -> Piece:
    """A leg of the table, its foot outwards, turned about the middle, in degrees."""
    slope = 0.13 / 0.46
    x, y, z = leg.positions.T
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    about = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    positions = np.stack([x + 0.18 - slope * y, y, z], axis=1) @ about.T
    normals = (leg.normals + np.outer(leg.normals[:, 0] * slope, (0, 1, 0))) @ about.T
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return replace(leg, positions=positions, normals=normals)


def _board(
    centre: tuple[float, float, float],
    size: tuple[float, float, float],
    cells: tuple[int, int, int],
) -> Part:
    return Part(centre, size, 0, cells=cells, bends=0)


# --- the file ---------------------------------------------------------------------------------


class Writer:
    """Collects what a .glb holds."""

    def __init__(self) -> None:
        self.views: list[dict[str, int]] = []
        self.accessors: list[dict[str, Any]] = []
        self.content = b""

    def view(self, data: bytes) -> int:
        """Bytes, by number."""
        self.views.append({"buffer": 0, "byteOffset": len(self.content), "byteLength": len(data)})
        self.content += data + bytes(-len(data) % 4)
        return len(self.views) - 1

    def array(self, values: np.ndarray, kind: int, width: str, **more: Any) -> int:
        """An accessor, by number."""
        types = {_FLOAT: "<f4", _BYTE: "<u1", _SHORT: "<u2"}
        view = self.view(np.ascontiguousarray(values, types[kind]).tobytes())
        entry = {"bufferView": view, "componentType": kind, "count": len(values), "type": width}
        self.accessors.append({**entry, **more})
        return len(self.accessors) - 1

    def primitive(self, piece: Piece, material: int) -> dict[str, Any]:
        """A piece's arrays."""
        points = piece.positions.astype(np.float32)
        ends = {"min": points.min(axis=0).tolist(), "max": points.max(axis=0).tolist()}
        attributes = {
            "POSITION": self.array(points, _FLOAT, "VEC3", **ends),
            "NORMAL": self.array(piece.normals, _FLOAT, "VEC3"),
            "COLOR_0": self.array(_colours(piece.openness), _BYTE, "VEC4", normalized=True),
        }
        if piece.uvs is not None:
            attributes["TEXCOORD_0"] = self.array(piece.uvs, _FLOAT, "VEC2")
        indices = self.array(piece.triangles.ravel(), _SHORT, "SCALAR")
        return {"attributes": attributes, "indices": indices, "material": material}


def glb(name: str, pieces: list[Piece]) -> bytes:
    """A .glb file of pieces."""
    writer = Writer()
    names = list(dict.fromkeys(piece.material for piece in pieces))
    primitives = [writer.primitive(piece, names.index(piece.material)) for piece in pieces]
    document: dict[str, Any] = {
        "asset": {"version": "2.0", "generator": _GENERATOR, "copyright": "CC0 1.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"name": name, "mesh": 0}],
        "meshes": [{"primitives": primitives}],
        "materials": [_material(each) for each in names],
    }
    if "fabric" in names:
        cloth = cv2.cvtColor(weave(_TEXELS), cv2.COLOR_RGB2BGR)
        _, picture = cv2.imencode(".jpg", cloth, [cv2.IMWRITE_JPEG_QUALITY, 80])
        view = writer.view(picture.tobytes())
        document["images"] = [{"bufferView": view, "mimeType": "image/jpeg"}]
        document["samplers"] = [{"wrapS": _MIRRORED, "wrapT": _MIRRORED}]
        document["textures"] = [{"source": 0, "sampler": 0}]
    document["accessors"], document["bufferViews"] = writer.accessors, writer.views
    document["buffers"] = [{"byteLength": len(writer.content)}]
    text = json.dumps(document, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<I4s", len(text), b"JSON") + text
    chunks += struct.pack("<I4s", len(writer.content), b"BIN\0") + writer.content
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


def _material(name: str) -> dict[str, Any]:
    colour, metallic, roughness, shining = MATERIALS[name]
    linear = [round((each / 255) ** 2, 4) for each in colour]  # as the renderer has it
    surface: dict[str, Any] = {"metallicFactor": metallic, "roughnessFactor": roughness}
    if name == "fabric":
        surface["baseColorTexture"] = {"index": 0}
    else:
        surface["baseColorFactor"] = [*linear, 1.0]
    found = {"name": name, "pbrMetallicRoughness": surface}
    if shining:
        found["emissiveFactor"] = [round(shining * each, 4) for each in linear]
    return found


def _colours(openness: np.ndarray) -> np.ndarray:
    """RGBA uint8 (n, 4): the sky's light falls into folds, the main light hardly."""
    share = np.clip((openness - 0.05) / 0.6, 0, 1)
    light = 0.43 * openness + 0.57 * share**2 * (3 - 2 * share)
    grey = np.rint(np.clip(light, 0, 1) * 255).astype(np.uint8)
    return np.stack([grey, grey, grey, np.full_like(grey, 255)], axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ASSETS / "content")
    folder: Path = parser.parse_args().folder
    for name, make in PIECES.items():
        pieces = make()
        content = glb(name, pieces)
        replace_file(folder / f"{name}.glb", content)
        count = sum(len(piece.triangles) for piece in pieces)
        print(f"{name}.glb: {count} triangles, {len(content) / 1024:.0f} kB")


if __name__ == "__main__":
    main()
