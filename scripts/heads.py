"""Models the heads that the emoji app's people wear, as .glb: heads.py [--to FOLDER]

Balls, boxes and cones of one colour each, in the axes of a head (`heimdall.models.head`):
centimetres here, metres in the files, around MediaPipe's canonical face. A jaw and lids that move
are nodes of their own, and the animation "expression" says where they are: at 0 s the mouth is
shut, at 1 s wide open; at 2 and 3 s the same with the eyes shut. The same shapes give the same
files.
"""

from __future__ import annotations

import argparse
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from heimdall.system.paths import replace_file

ROOT = Path(__file__).resolve().parents[1]
FINE, ROUND, COARSE = (28, 18), (20, 12), (14, 9)  # columns and rows of a ball
THIN = (6, 6)
WIDE_OPEN = 24.0  # degrees that a jaw turns
SHUT = 95.0  # degrees that a lid turns
MOMENTS = (0.0, 1.0, 2.0, 3.0)  # seconds: mouth shut and open, then again with the eyes shut

Point = tuple[float, float, float]


@dataclass
class Shape:
    """Vertices (n, 3) in centimetres, normals, colours (n, 4) uint8, triangles (m, 3)."""

    vertices: np.ndarray
    normals: np.ndarray
    colors: np.ndarray
    triangles: np.ndarray


@dataclass
class Part:
    """What moves as one about ``hinge``: turned about x by so many degrees, and as tall as this, in
    each of ``MOMENTS``."""

    name: str
    hinge: Point = (0.0, 0.0, 0.0)
    turns: tuple[float, ...] = (0.0,) * 4
    heights: tuple[float, ...] = (1.0,) * 4
    shapes: list[Shape] = field(default_factory=list)

    @property
    def moves(self) -> bool:
        """Whether it is not the same all the time."""
        return len(set(self.turns)) > 1 or len(set(self.heights)) > 1

    def add(self, *shapes: Shape) -> Part:
        """Also these."""
        self.shapes += shapes
        return self


def lathe(
    middle: Point,
    radii: Point,
    color: str,
    *,
    profile: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    grid: tuple[int, int] = COARSE,
    square: float = 1.0,
    turn: Point = (0.0, 0.0, 0.0),
) -> Shape:
    """What turns about its own y: ``profile`` gives radius and height for 0..1 from top to bottom.
    ``square`` below 1 makes it a box with round edges; ``turn``: degrees about x, y, then z."""
    columns, rows = grid
    down, around = np.meshgrid(
        np.linspace(0, 1, rows + 1), np.linspace(0, 2 * np.pi, columns + 1), indexing="ij"
    )
    radius, height = profile(down)
    places = np.stack(
        [
            radius * _powered(np.sin(around), square),
            height,
            radius * _powered(np.cos(around), square),
        ],
        axis=-1,
    ) * np.array(radii)
    number = np.arange((rows + 1) * (columns + 1)).reshape(rows + 1, columns + 1)
    a, b, c, d = number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]
    triangles = np.concatenate([np.stack([a, b, c], -1), np.stack([a, c, d], -1)]).reshape(-1, 3)
    vertices = places.reshape(-1, 3)
    a, b, c = vertices[triangles].transpose(1, 0, 2)
    triangles = triangles[
        np.linalg.norm(np.cross(b - a, c - a), axis=1) > 1e-9
    ]  # none at the poles
    turned = _turned(turn)
    return Shape(
        vertices @ turned.T + np.array(middle),
        _smooth(vertices, triangles) @ turned.T,
        np.tile(_linear(color), (len(vertices), 1)),
        triangles,
    )


def ball(middle: Point, radii: Point, color: str, **more: Any) -> Shape:
    """An ellipsoid, or a box with round edges."""
    square = more.get("square", 1.0)

    def half_circle(down: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _powered(np.sin(np.pi * down), square), _powered(np.cos(np.pi * down), square)

    return lathe(middle, radii, color, profile=half_circle, **more)


def cone(middle: Point, radii: Point, color: str, **more: Any) -> Shape:
    """A cone with a round tip, from its middle to its top: an ear."""
    return lathe(
        middle,
        radii,
        color,
        profile=lambda down: (np.sin(np.pi / 2 * down) ** 1.4, 1 - down),
        **more,
    )


def drum(middle: Point, radii: Point, color: str, **more: Any) -> Shape:
    """A cylinder with round edges."""
    return lathe(
        middle,
        radii,
        color,
        profile=lambda down: (
            _powered(np.sin(np.pi * down), 0.2),
            _powered(np.cos(np.pi * down), 0.2),
        ),
        **more,
    )


def ring(middle: Point, radius: float, thick: float, color: str, **more: Any) -> Shape:
    """Around an eye: a torus that looks along z."""
    return lathe(
        middle,
        (1.0, 1.0, 1.0),
        color,
        profile=lambda down: (
            radius + thick * np.sin(2 * np.pi * down),
            thick * np.cos(2 * np.pi * down),
        ),
        turn=(90, 0, 0),
        **more,
    )


def dome(middle: Point, radius: float, color: str) -> Shape:
    """The upper half of a ball: a lid."""

    def quarter(down: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.sin(np.pi / 2 * down), np.cos(np.pi / 2 * down)

    return lathe(middle, (radius,) * 3, color, profile=quarter, grid=(20, 6))


def both(make: Callable[[float], Shape]) -> tuple[Shape, Shape]:
    """``make`` for the side -1 and for 1."""
    return make(-1.0), make(1.0)


def jaw(hinge: Point = (0.0, -1.0, -2.0)) -> Part:
    """Opens with the mouth."""
    return Part("jaw", hinge, turns=(0, WIDE_OPEN, 0, WIDE_OPEN))


def lids(x: float, y: float, z: float, radius: float, color: str) -> list[Part]:
    """One above each eye, open behind it."""
    made = []
    for name, side in (("left lid", -1), ("right lid", 1)):
        lid = Part(name, (side * x, y, z), turns=(-70, -70, SHUT, SHUT))
        made.append(lid.add(dome((side * x, y, z), radius, color)))
    return made


def eyes(x: float, y: float, z: float, radius: float, white: str, pupil: str) -> list[Shape]:
    """Balls with pupils that look ahead, and a light in each."""
    found: list[Shape] = []
    for side in (-1, 1):
        r = radius
        found += [
            ball((side * x, y, z), (r, r, r), white, grid=ROUND),
            ball((side * x, y, z + 0.55 * r), (0.62 * r, 0.68 * r, 0.56 * r), pupil, grid=ROUND),
            ball((side * x - 0.22 * r, y + 0.3 * r, z + 0.92 * r), (0.17 * r,) * 3, "#ffffff"),
        ]
    return found


def fox() -> list[Part]:
    orange, white, dark, brown = "#f0853a", "#fff4e6", "#2b1d18", "#4a2a1c"
    skull = Part("skull").add(
        ball((0, 1.6, -1), (10.2, 12.2, 10.4), orange, grid=FINE),
        *both(
            lambda s: ball(
                (s * 6.2, -4.2, 2.6), (5.2, 3.8, 5), white, grid=ROUND, turn=(0, 0, 25 * s)
            )
        ),
        ball((0, -2.2, 8.6), (3.5, 2.6, 5.8), orange),
        ball((0, -3.6, 8.2), (3.3, 1.7, 5.4), white),
        ball((0, -1.0, 14.0), (1.5, 1.2, 1.2), dark),
        *both(lambda s: cone((s * 6.3, 8.6, -2), (4, 9, 1.8), orange, turn=(0, 0, -s * 18))),
        *both(lambda s: cone((s * 6.2, 9.0, -0.9), (2.4, 6.4, 1.4), brown, turn=(0, 0, -s * 18))),
        *eyes(3.8, 3.0, 7.4, 2.0, "#ffffff", dark),
    )
    mouth = jaw().add(
        ball((0, -4.9, 6.8), (2.8, 1.5, 5.2), white),
        ball((0, -4.2, 6.9), (2.3, 1.2, 4.8), "#c2424f"),
    )
    return [skull, mouth, *lids(3.8, 3.0, 7.4, 2.4, "#d9722c")]


def panda() -> list[Part]:
    white, black, rose = "#f7f5f0", "#2a2b30", "#f6b9b4"
    skull = Part("skull").add(
        ball((0, 1.6, -1), (11.2, 12, 10.6), white, grid=FINE),
        *both(lambda s: ball((s * 8.2, 11.2, -2.4), (3.7, 3.7, 2.2), black)),
        *both(
            lambda s: ball((s * 4.2, 2.2, 7.2), (2.7, 3.7, 2.4), black, turn=(0, s * 15, s * 28))
        ),
        *both(lambda s: ball((s * 6.8, -2.6, 6.2), (1.8, 1.2, 1.0), rose, turn=(0, s * 40, 0))),
        ball((0, -3.0, 7.4), (4.4, 3.2, 3.6), white),
        ball((0, -1.6, 10.9), (1.7, 1.1, 0.9), black),
        *eyes(3.9, 2.7, 8.8, 1.35, "#ffffff", black),
    )
    mouth = jaw().add(
        ball((0, -5.6, 6.2), (3.4, 1.9, 3.7), white),
        ball((0, -4.7, 6.4), (2.8, 1.5, 3.4), "#c2424f"),
    )
    return [skull, mouth, *lids(3.9, 2.7, 8.8, 1.62, "#4a4b52")]


def cat() -> list[Part]:
    grey, pale, pink, dark, inner = "#a4aabb", "#e9ebf1", "#f08a9d", "#6f7588", "#f2a7b5"

    def whisker(side: float, rise: float) -> Shape:
        at = (side * 6.2, -3.4 + rise, 8.6)
        return ball(
            at, (0.12, 4.2, 0.12), "#f6f7fa", turn=(0, side * 20, 90 + side * 6 * rise), grid=THIN
        )

    skull = Part("skull").add(
        ball((0, 1.4, -1), (10.8, 11.9, 10.4), grey, grid=FINE),
        *both(lambda s: cone((s * 6.4, 8.4, -2), (4.2, 8, 1.8), grey, turn=(0, 0, -s * 20))),
        *both(lambda s: cone((s * 6.3, 8.8, -0.9), (2.5, 5.6, 1.4), inner, turn=(0, 0, -s * 20))),
        *both(lambda s: ball((s * 1.9, -3.2, 8.6), (2.4, 2.0, 2.2), pale)),
        ball((0, -1.7, 10.4), (1.2, 0.8, 0.8), pink),
        *(whisker(s, rise) for s in (-1.0, 1.0) for rise in (-1.0, 0.0, 1.0)),
        *both(lambda s: ball((s * 3.4, 11.0, 3.6), (0.5, 2.4, 0.8), dark, turn=(-35, 0, s * 10))),
        ball((0, 11.7, 3.6), (0.5, 2.6, 0.8), dark, turn=(-35, 0, 0)),
        *eyes(4.1, 2.8, 7.2, 2.3, "#b7e36a", "#22251c"),
    )
    mouth = jaw().add(
        ball((0, -5.4, 6.6), (2.6, 1.6, 3.9), pale),
        ball((0, -4.6, 6.8), (2.1, 1.2, 3.5), "#c2424f"),
    )
    return [skull, mouth, *lids(4.1, 2.8, 7.2, 2.76, "#8d93a5")]


def robot() -> list[Part]:
    steel, dark, light = "#c3d0da", "#22303c", "#19e3d0"
    skull = Part("skull").add(
        ball((0, 3.8, -1), (10, 10.2, 9.4), steel, grid=FINE, square=0.45),
        *both(lambda s: ball((s * 10.4, 1, -1), (1.4, 3, 3), "#5f6b78", square=0.6)),
        ball((0, 15, -1), (0.5, 2.6, 0.5), "#7b8794"),
        ball((0, 17.8, -1), (1.5, 1.5, 1.5), "#ff5d5d"),
        ball((0, 2.8, 7.4), (7.8, 3.2, 1.7), dark, square=0.5),
        *both(lambda s: ball((s * 3.8, 2.8, 8.8), (1.9, 1.9, 0.7), light)),
        *both(lambda s: ball((s * 3.8, 2.8, 9.2), (0.9, 0.9, 0.6), "#d7fffa")),
        ball((0, -5.6, 4.6), (6, 1.2, 3), dark, square=0.6),
    )
    mouth = jaw((0, -5.0, -3.0)).add(
        ball((0, -8.2, 1.6), (7.6, 2.4, 6.4), "#9fb0bf", grid=FINE, square=0.45),
        *(
            ball((x, -6.4, 7.4), (0.7, 0.9, 0.6), light, square=0.6)
            for x in (-4.2, -2.1, 0, 2.1, 4.2)
        ),
    )
    covers = []
    for name, side in (("left lid", -1), ("right lid", 1)):
        middle = (side * 3.8, 4.9, 9.2)  # comes down like a shutter
        cover = Part(name, middle, heights=(0.12, 0.12, 1.0, 1.0))
        covers.append(cover.add(ball((side * 3.8, 2.9, 9.2), (2.2, 2.1, 0.8), dark, square=0.6)))
    return [skull, mouth, *covers]


def smiley() -> list[Part]:
    yellow, black, shine = "#ffd23f", "#1d2230", "#4a5572"
    skull = Part("skull").add(
        ball((0, 1.7, -1), (11.8, 12.3, 10.8), yellow, grid=FINE),
        *both(lambda s: ball((s * 7, -2.4, 6.4), (1.9, 1.3, 0.9), "#ff9d5c", turn=(0, s * 42, 0))),
        *both(
            lambda s: ball((s * 4, 3, 8.2), (3.8, 2.7, 1.5), black, square=0.7, turn=(0, s * 18, 0))
        ),
        *both(lambda s: ball((s * 10.5, 3.4, 3.6), (0.4, 0.5, 5.4), black, turn=(0, -s * 21, 0))),
        ball((0, 4.4, 9.6), (2.2, 0.6, 0.6), black),
        *both(lambda s: ball((s * 4 - 1.2, 4, 9.6), (1.1, 0.5, 0.4), shine, turn=(0, s * 18, 30))),
    )
    heights = (0.35, 1.0, 0.35, 1.0)
    mouth = Part("mouth", (0, -4.2, 8.0), heights=heights).add(
        ball((0, -5.2, 7.6), (4.4, 2.4, 1.7), "#6b2a1b"),
        ball((0, -6.3, 8.2), (2.4, 1.0, 1.3), "#ff7d7d"),
    )
    return [skull, mouth]


def dandy() -> list[Part]:
    """No head, but what one wears on one's own: hat, glasses and moustache."""
    black, red, gold, brown = "#23242b", "#b3262e", "#d8a93a", "#4a2c17"
    skull = Part("hat and glasses").add(
        drum((0, 16.2, -3.4), (7.6, 6.4, 7.6), black, grid=FINE),
        drum((0, 11.4, -3.4), (7.8, 1.2, 7.8), red, grid=FINE),
        drum((0, 9.7, -3.4), (11.6, 0.5, 11.6), black, grid=FINE),
        *both(lambda s: ring((s * 3.3, 2.6, 5.6), 2.5, 0.28, gold, grid=(24, 8))),
        ball((0, 3.1, 6.2), (1.0, 0.25, 0.3), gold),
        *both(lambda s: ball((s * 6.7, 3.0, 2.6), (0.25, 0.3, 3.2), gold, turn=(0, -s * 16, 0))),
    )
    moustache = Part("moustache", (0, -2.4, 5.6), turns=(0, -12, 0, -12)).add(
        *both(lambda s: ball((s * 1.9, -3.1, 6.7), (2.3, 0.75, 0.8), brown, turn=(0, 0, -s * 14))),
        *both(lambda s: ball((s * 4.2, -3.0, 6.0), (1.0, 0.4, 0.5), brown, turn=(0, 0, s * 38))),
    )
    return [skull, moustache]


HEADS = {"fox": fox, "panda": panda, "cat": cat, "robot": robot, "smiley": smiley}
WORN = {**HEADS, "dandy": dandy}
_METAL = {"robot": (0.55, 0.35)}  # metallic and rough; else 0 and 0.75


def glb(name: str) -> bytes:
    """The file of a head."""
    parts = WORN[name]()
    blob = _Blob()
    nodes: list[dict[str, Any]] = []
    meshes, channels, samplers = [], [], []
    times = blob.add(np.array(MOMENTS, np.float32), "SCALAR")
    for part in parts:
        hinge = np.array(part.hinge)
        every, first = [], 0
        for shape in part.shapes:
            every.append(shape.triangles + first)
            first += len(shape.vertices)
        vertices = np.concatenate([shape.vertices - hinge for shape in part.shapes]) / 100
        attributes = {
            "POSITION": blob.add(vertices.astype(np.float32), "VEC3", target=34962),
            "NORMAL": blob.add(_joined(part, "normals").astype(np.float32), "VEC3", target=34962),
            "COLOR_0": blob.add(_joined(part, "colors"), "VEC4", target=34962, normalized=True),
        }
        indices = blob.add(np.concatenate(every).astype(np.uint16).ravel(), "SCALAR", target=34963)
        primitive = {"attributes": attributes, "indices": indices, "material": 0}
        meshes.append({"name": part.name, "primitives": [primitive]})
        node = {"name": part.name, "mesh": len(meshes) - 1, "translation": (hinge / 100).tolist()}
        if part.moves:
            half = np.radians(np.array(part.turns)) / 2
            turns = np.zeros((4, 4), np.float32)
            turns[:, 0], turns[:, 3] = np.sin(half), np.cos(half)
            scales = np.ones((4, 3), np.float32)
            scales[:, 1] = part.heights
            for path, values in (("rotation", turns), ("scale", scales)):
                kind = "VEC4" if path == "rotation" else "VEC3"
                samplers.append({"input": times, "output": blob.add(values, kind)})
                target = {"node": len(nodes), "path": path}
                channels.append({"sampler": len(samplers) - 1, "target": target})
        nodes.append(node)
    metallic, rough = _METAL.get(name, (0.0, 0.75))
    surface = {"metallicFactor": metallic, "roughnessFactor": rough}
    document = {
        "asset": {"version": "2.0", "generator": "scripts/heads.py"},
        "scene": 0,
        "scenes": [{"nodes": list(range(len(nodes)))}],
        "nodes": nodes,
        "meshes": meshes,
        "materials": [{"name": name, "pbrMetallicRoughness": surface}],
        "animations": [{"name": "expression", "channels": channels, "samplers": samplers}],
        "accessors": blob.accessors,
        "bufferViews": blob.views,
        "buffers": [{"byteLength": len(blob.content)}],
    }
    text = json.dumps(document, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<I4s", len(text), b"JSON") + text
    chunks += struct.pack("<I4s", len(blob.content), b"BIN\0") + bytes(blob.content)
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


class _Blob:
    """The numbers of a file, and where they are."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []

    def add(
        self, values: np.ndarray, kind: str, *, target: int | None = None, normalized: bool = False
    ) -> int:
        """Put these in; returns the number of the accessor."""
        view: dict[str, Any] = {"buffer": 0, "byteOffset": len(self.content)}
        view["byteLength"] = values.nbytes
        if target:
            view["target"] = target
        self.content += values.tobytes() + b"\0" * (-values.nbytes % 4)
        self.views.append(view)
        types = {"float32": 5126, "uint16": 5123, "uint8": 5121}
        accessor: dict[str, Any] = {"bufferView": len(self.views) - 1, "type": kind}
        accessor |= {"componentType": types[str(values.dtype)], "count": len(values)}
        if normalized:
            accessor["normalized"] = True
        if values.dtype == np.float32 and (kind == "VEC3" or kind == "SCALAR"):
            rows = values.reshape(len(values), -1)
            accessor["min"] = rows.min(axis=0).tolist()
            accessor["max"] = rows.max(axis=0).tolist()
        self.accessors.append(accessor)
        return len(self.accessors) - 1


def _joined(part: Part, what: str) -> np.ndarray:
    return np.concatenate([getattr(shape, what) for shape in part.shapes])


def _linear(color: str) -> np.ndarray:
    """``#rrggbb`` as vertex colours have it, proportional to light, with alpha; (4,) uint8."""
    rgb = np.array([*bytes.fromhex(color.removeprefix("#"))]) / 255
    light = np.where(rgb > 0.04045, ((rgb + 0.055) / 1.055) ** 2.4, rgb / 12.92)
    return np.array([*(light * 255).round(), 255], np.uint8)


def _powered(values: np.ndarray, power: float) -> np.ndarray:
    """Values to the power, their signs kept: a superellipse's."""
    return np.sign(values) * np.abs(values) ** power


def _turned(degrees: Point) -> np.ndarray:
    """The rotation (3, 3) about x, then y, then z."""
    found = np.eye(3)
    for axis, angle in enumerate(np.radians(degrees)):
        c, s = np.cos(angle), np.sin(angle)
        i, j = (axis + 1) % 3, (axis + 2) % 3
        turn = np.eye(3)
        turn[[i, i, j, j], [i, j, i, j]] = c, -s, s, c
        found = turn @ found
    return found


def _smooth(vertices: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Unit normals (n, 3): the mean of the triangles around each place, weighted by their area."""
    a, b, c = vertices[triangles].transpose(1, 0, 2)
    flat = np.cross(b - a, c - a)
    _, place = np.unique(vertices.round(6), axis=0, return_inverse=True)  # seams and poles are one
    place = place.ravel()
    total = np.zeros((place.max() + 1, 3))
    for corner in range(3):
        np.add.at(total, place[triangles[:, corner]], flat)
    normals = total[place]
    return normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--to", type=Path, default=ROOT / "assets" / "content")
    arguments = parser.parse_args()
    for name in WORN:
        content = glb(name)
        replace_file(arguments.to / f"{name}.glb", content)
        print(f"{name}.glb: {len(content) / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
