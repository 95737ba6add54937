"""Models as they are drawn, against small pictures that somebody has looked at.

A picture that is not there yet fails its test, which says where it has drawn it: look at it, and
put it into references/.
"""

from pathlib import Path

import cv2
import numpy as np
import pytest

from heimdall.render.content.look import look
from heimdall.system.paths import ASSETS

FOLDER = Path(__file__).with_name("references")
SIZE = (160, 120)
ALIKE = 0.95


def ssim(a, b):
    """Structural similarity (Wang et al. 2004) of two pictures, mean over pixels and channels."""

    def mean(x):
        return cv2.GaussianBlur(x, (11, 11), 1.5)

    a, b = a.astype(float), b.astype(float)
    ma, mb, c1, c2 = mean(a), mean(b), (0.01 * 255) ** 2, (0.03 * 255) ** 2
    va, vb, both = mean(a * a) - ma * ma, mean(b * b) - mb * mb, mean(a * b) - ma * mb
    alike = (2 * ma * mb + c1) * (2 * both + c2) / ((ma**2 + mb**2 + c1) * (va + vb + c2))
    return float(alike.mean())


def sphere(writer, x, material, rings=12, **more):
    """A ball of 1 m at (x, 0, 0)."""
    v, u = (each.ravel() for each in np.mgrid[0 : rings + 1, 0 : 2 * rings + 1])
    down, turn = v / rings * np.pi, u / rings * np.pi
    normals = np.stack([np.sin(down) * np.sin(turn), np.cos(down), np.sin(down) * np.cos(turn)], 1)
    row = 2 * rings + 1
    corner = (v * row + u)[(v < rings) & (u < 2 * rings)]
    quads = np.stack([corner, corner + row, corner + row + 1, corner + 1], axis=1)
    triangles = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    uvs = np.stack([u / (2 * rings), v / rings], axis=1)
    mesh = writer.mesh(
        normals * 0.5 + (x, 0, 0),
        triangles.ravel(),
        material,
        NORMAL=writer.array(normals),
        TEXCOORD_0=writer.array(uvs),
        **more,
    )
    nodes = writer.document["nodes"]
    if mesh:
        nodes.append({"mesh": mesh})
        writer.document["scenes"][0]["nodes"].append(len(nodes) - 1)


def checks(side=32, cells=4, light=(230, 200, 120), dark=(60, 80, 140)):
    cell = np.add.outer(np.arange(side), 0 * np.arange(side)) * cells // side
    odd = (cell + cell.T) % 2 == 1
    return np.where(odd[..., None], light, dark).astype(np.uint8)


def surfaces(writer):
    """Rough and shiny, cloth and metal."""
    looks = ((0.0, 1.0), (0.0, 0.3), (1.0, 0.7), (1.0, 0.15))
    for number, (metal, rough) in enumerate(looks):
        surface = {
            "baseColorFactor": [0.8, 0.45, 0.2, 1],
            "metallicFactor": metal,
            "roughnessFactor": rough,
        }
        sphere(writer, 1.1 * number, {"pbrMetallicRoughness": surface})


def maps(writer):
    """A normal map, a map of roughness and metal, one of shade and one of light."""
    bumps = np.full((32, 32, 3), (128, 128, 255), np.uint8)
    bumps[:, ::8] = (200, 128, 220)
    rough = checks(light=(255, 60, 255), dark=(255, 230, 0))
    glow = np.zeros((32, 32, 3), np.uint8)
    glow[14:18] = (255, 90, 30)
    material = {
        "pbrMetallicRoughness": {
            "baseColorTexture": {"index": writer.picture(checks(cells=8))},
            "metallicRoughnessTexture": {"index": writer.picture(rough)},
        },
        "normalTexture": {"index": writer.picture(bumps)},
        "occlusionTexture": {"index": writer.picture(np.full((4, 4, 3), 180))},
        "emissiveTexture": {"index": writer.picture(glow)},
        "emissiveFactor": [1, 1, 1],
    }
    sphere(writer, 0, material)


def cutouts(writer):
    """A ball with holes, one that is half clear, and an opaque one behind."""
    holes = np.dstack([checks(), np.where(checks()[..., 0] > 100, 255, 0)])
    texture = {"index": writer.picture(holes)}
    sphere(
        writer,
        0,
        {
            "pbrMetallicRoughness": {"baseColorTexture": texture, "metallicFactor": 0},
            "alphaMode": "MASK",
            "doubleSided": True,
        },
    )
    others = ((1.1, [0.2, 0.5, 0.9, 0.4], "BLEND"), (1.9, [0.9, 0.2, 0.1, 1], "OPAQUE"))
    for x, colour, mode in others:
        surface = {"baseColorFactor": colour, "metallicFactor": 0, "roughnessFactor": 0.4}
        sphere(writer, x, {"pbrMetallicRoughness": surface, "alphaMode": mode})


def bent(writer):
    """A skin half way through its animation, with a morph target that makes it thicker."""
    y, turn = (each.ravel() for each in np.mgrid[0:13, 0:12])
    ring = np.stack([np.cos(turn * np.pi / 6), 0 * y, np.sin(turn * np.pi / 6)], axis=1)
    points = 0.25 * ring + np.outer(y / 6, (0, 1, 0))
    corner = (y * 12 + turn)[y < 12]
    beside = (y * 12 + (turn + 1) % 12)[y < 12]
    triangles = np.concatenate(
        [
            np.stack([corner, corner + 12, beside + 12], 1),
            np.stack([corner, beside + 12, beside], 1),
        ]
    )
    upper = np.clip(y / 6 - 0.5, 0, 1)
    weights = np.stack([1 - upper, upper, 0 * upper, 0 * upper], axis=1)
    thick = ring * 0.2 * np.exp(-((y / 6 - 1.6) ** 2) * 20)[:, None]
    mesh = writer.mesh(
        points,
        triangles.ravel(),
        {"doubleSided": True, "pbrMetallicRoughness": {"baseColorFactor": [0.3, 0.6, 0.3, 1]}},
        targets=[thick],
        NORMAL=writer.array(ring),
        JOINTS_0=writer.array(np.tile([0, 1, 0, 0], (len(points), 1)), "u1"),
        WEIGHTS_0=writer.array(weights),
    )
    writer.document["meshes"][mesh]["weights"] = [1.0]
    writer.bones()


def unlit(writer):
    """Vertex colours that no light changes, and lines."""
    square = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], float)
    colours = [[255, 0, 0, 255], [0, 255, 0, 255], [0, 0, 255, 255], [255, 255, 0, 255]]
    shade = writer.array(colours, "u1", normalized=True)
    alone = {"KHR_materials_unlit": dict[str, str]()}
    mesh = writer.mesh(square, [0, 1, 2, 0, 2, 3], {"extensions": alone}, COLOR_0=shade)
    frame = {"attributes": {"POSITION": writer.array(square * 1.3 - 0.15)}, "mode": 2}
    writer.document["meshes"][mesh]["primitives"].append(frame)


MADE = {each.__name__: each for each in (surfaces, maps, cutouts, bent, unlit)}
BUNDLED = ("couch", "chair", "side-table", "lamp", "shelf")


def compared(file, name, folder, **how):
    drawn = folder / f"{name}.png"
    found = look(file, SIZE, png=drawn, **how)
    assert found["error"] is None
    reference = cv2.imread(str(FOLDER / f"{name}.png"))
    assert reference is not None, f"look at {drawn}, and keep it in {FOLDER}"
    assert ssim(cv2.imread(str(drawn)), reference) >= ALIKE


@pytest.mark.parametrize("name", MADE)
def test_models_look_as_they_did(name, writer, tmp_path):
    MADE[name](writer)
    how = {"animation": 0, "time_s": 0.5} if name == "bent" else {}
    compared(writer.save(), name, tmp_path, **how)


@pytest.mark.parametrize("name", BUNDLED)
def test_furniture_looks_as_it_did(name, tmp_path):
    compared(ASSETS / "content" / f"{name}.glb", name, tmp_path)


def test_the_measure_sees_what_an_eye_sees():
    picture = cv2.imread(str(FOLDER / "surfaces.png"))
    assert ssim(picture, picture) == pytest.approx(1)
    assert ssim(picture, np.clip(picture.astype(int) + 2, 0, 255)) > ALIKE
    assert ssim(picture, np.roll(picture, 4, axis=1)) < ALIKE
    assert ssim(picture, np.full_like(picture, int(picture.mean()))) < ALIKE
