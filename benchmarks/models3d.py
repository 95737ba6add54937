"""What 3-D models cost a frame: ``python benchmarks/models3d.py [FILE]... [--write]``.

The bundled models, and the files given, are drawn at 1280 x 720, turning, by `heimdall model3d`'s
own measure, in several rounds; on software GL it is one core that draws. ``--pixels``: what a pixel
takes instead, by what its material looks up, from a square drawn large and small. ``--write``
renews the table in docs/laboratory/models3d.md.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import re
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image

from heimdall.render.content.look import look, studio
from heimdall.system import paths
from heimdall.system.cpu import cpu_name

PAGE = paths.ROOT / "docs" / "laboratory" / "models3d.md"
ROUNDS = 5
SIZES = ((1280, 720), (320, 180))
MAPS = ("metallicRoughnessTexture", "normalTexture")
_TABLE = re.compile(r"(?<=<!-- costs -->\n).*?(?=<!-- /costs -->)", re.DOTALL)
TEXT = """On one core of {machine}, by `python benchmarks/models3d.py --write`: medians of {rounds}
rounds (least to most), the model as large as a 720p picture lets it be. Drawing is what it adds to
a frame, turning, in time of all cores: other work on the machine disturbs that less than the
clock's.

| model | triangles | drawing, ms | loading, ms |
|---|---|---|---|
{rows}
"""


def rows(files: list[Path], rounds: int) -> Iterator[str]:
    """Lines of the table."""
    for file in files:
        found = [look(file) for _ in range(rounds)]
        if found[0]["error"] is not None:
            yield f"| {file.name} | {found[0]['error']} | | |"
            continue
        figures = [_cell(found, key) for key in ("cpu_ms", "load_ms")]
        yield " | ".join([f"| {file.name}", f"{found[0]['triangles']:,}", *figures]) + " |"


def _cell(found: list[dict[str, Any]], key: str) -> str:
    values = [each[key] for each in found]
    digits = 1 if max(values) < 100 else 0
    middle, *ends = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f} ({ends[0]:.{digits}f}-{ends[1]:.{digits}f})"


def pixels(rounds: int) -> Iterator[str]:
    """Lines of a table: what a pixel takes on each way of drawing it, in ns."""
    picture, map_ = {"index": 0}, {"index": 1}
    rough, smooth = {"metallicFactor": 0, "roughnessFactor": 0.8}, {"roughnessFactor": 0.2}
    ways: dict[str, dict[str, Any]] = {
        "light from the vertices": {"pbrMetallicRoughness": rough},
        "and a picture": {"pbrMetallicRoughness": {**rough, "baseColorTexture": picture}},
        "and what it reflects": {"pbrMetallicRoughness": {**smooth, "baseColorTexture": picture}},
        "and a map of roughness": {
            "pbrMetallicRoughness": {"baseColorTexture": picture, MAPS[0]: map_}
        },
        "and a normal map": {
            "pbrMetallicRoughness": {"baseColorTexture": picture, MAPS[0]: map_},
            MAPS[1]: map_,
        },
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, material in ways.items():
            file = Path(folder) / "square.gltf"
            file.write_text(json.dumps(_square(material, pictures=name != next(iter(ways)))))
            values = [_pixel_ns(file) for _ in range(rounds)]
            middle = statistics.median(values)
            yield f"| {name} | {middle:.0f} ({min(values):.0f}-{max(values):.0f}) |"


def _pixel_ns(file: Path) -> float:
    """The difference that pixels make: of a square drawn large and small."""
    took, covered = [], []
    for size in SIZES:
        png = file.with_name("square.png")
        took.append(look(file, size, png=png)["cpu_ms"])
        drawn = cv2.imread(str(png))
        assert drawn is not None
        covered.append(int((cv2.absdiff(drawn, studio(size)).max(axis=2) > 3).sum()))
    return float((took[0] - took[1]) / (covered[0] - covered[1]) * 1e6)


def _square(material: dict[str, Any], *, pictures: bool) -> dict[str, Any]:
    """A square of 1 m with a picture and a map, as glTF; with coordinates for them, or without."""
    attributes = {"POSITION": 0, **({"TEXCOORD_0": 1} if pictures else {})}
    corners = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], "<f4")
    uvs, indices = corners[:, :2], np.array([0, 1, 2, 0, 2, 3], "<u2")
    rng = np.random.default_rng(3)
    views: list[bytes] = [corners.tobytes(), np.ascontiguousarray(uvs).tobytes(), indices.tobytes()]
    for low, high in ((0, 255), (100, 156)):
        file = io.BytesIO()
        Image.fromarray(rng.integers(low, high, (256, 256, 3), np.uint8)).save(file, "PNG")
        views.append(file.getvalue() + bytes(-len(file.getvalue()) % 4))
    starts = np.cumsum([0, *map(len, views)]).tolist()
    places = zip(starts, views, strict=False)
    uri = "data:application/octet-stream;base64," + base64.b64encode(b"".join(views)).decode()
    return {
        "asset": {"version": "2.0"},
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": attributes, "indices": 2, "material": 0}]}],
        "materials": [material],
        "images": [{"bufferView": 3}, {"bufferView": 4}],
        "textures": [{"source": 0}, {"source": 1}],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3"},
            {"bufferView": 1, "componentType": 5126, "count": 4, "type": "VEC2"},
            {"bufferView": 2, "componentType": 5123, "count": 6, "type": "SCALAR"},
        ],
        "bufferViews": [
            {"buffer": 0, "byteOffset": start, "byteLength": len(view)} for start, view in places
        ],
        "buffers": [{"byteLength": starts[-1], "uri": uri}],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="models besides")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--write", action="store_true", help=f"renew the table in {PAGE.name}")
    parser.add_argument("--pixels", action="store_true", help="what a pixel takes instead")
    arguments = parser.parse_args()
    if arguments.pixels:
        print("| pixels | ns each |\n|---|---|", *pixels(arguments.rounds), sep="\n")
        return
    bundled = sorted((paths.ASSETS / "content").glob("*.glb"))
    text = TEXT.format(
        machine=cpu_name(),
        rounds=arguments.rounds,
        rows="\n".join(rows([*bundled, *arguments.files], arguments.rounds)),
    )
    if arguments.write:
        page = _TABLE.sub(lambda _: text, PAGE.read_text(encoding="utf-8"))
        paths.replace_file(PAGE, page.encode())
    print(text)


if __name__ == "__main__":
    main()
