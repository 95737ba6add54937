"""The script that models the heads of the emoji app."""

from __future__ import annotations

import importlib
import json
import struct

import numpy as np
import pytest

from heimdall.models.head import canonical_face
from heimdall.system import paths

heads = importlib.import_module("scripts.heads")


def test_a_ball_is_closed_and_its_normals_point_outwards() -> None:
    ball = heads.ball((1, 2, 3), (4, 5, 6), "#ff8000")
    around = ball.vertices - (1, 2, 3)
    assert (around / (4, 5, 6)) ** 2 @ np.ones(3) == pytest.approx(np.ones(len(around)))
    assert (around * ball.normals).sum(axis=1).min() > 0
    a, b, c = ball.vertices[ball.triangles].transpose(1, 0, 2)
    volume = np.einsum("ij,ij->i", a - (1, 2, 3), np.cross(b - a, c - a)).sum() / 6
    assert volume == pytest.approx(4 / 3 * np.pi * 4 * 5 * 6, rel=0.1)


def test_a_ring_is_round_looks_along_z_and_is_open() -> None:
    ring = heads.ring((1, 2, 3), 2.5, 0.3, "#ff8000")
    x, y, z = (ring.vertices - (1, 2, 3)).T
    assert np.hypot(x, y).min() == pytest.approx(2.2, abs=0.02)
    assert np.hypot(x, y).max() == pytest.approx(2.8, abs=0.02)
    assert np.abs(z).max() == pytest.approx(0.3, abs=0.02)


def test_colours_are_proportional_to_light() -> None:
    assert heads.ball((0, 0, 0), (1, 1, 1), "#ff8000").colors[0].tolist() == [255, 55, 0, 255]


@pytest.mark.parametrize("name", heads.WORN)
def test_bundled_heads_are_what_the_script_makes(name) -> None:
    bundled = (paths.ASSETS / "content" / f"{name}.glb").read_bytes()
    made = heads.glb(name)
    ours, theirs = (_numbers(content) for content in (made, bundled))
    assert ours[0] == theirs[0]
    assert ours[1] == pytest.approx(theirs[1], abs=1e-5)  # sines differ in the last bit


def _numbers(content: bytes) -> tuple[dict, np.ndarray]:
    (length,) = struct.unpack("<I", content[12:16])
    document = json.loads(content[20 : 20 + length])
    for accessor in document["accessors"]:
        accessor.pop("min", None)
        accessor.pop("max", None)
    blob = content[28 + length :]
    floats = [
        np.frombuffer(blob, np.float32, view["byteLength"] // 4, view["byteOffset"])
        for accessor in document["accessors"]
        if accessor["componentType"] == 5126
        for view in [document["bufferViews"][accessor["bufferView"]]]
    ]
    return document, np.concatenate(floats)


@pytest.mark.parametrize("name", heads.HEADS)
def test_a_head_hides_the_face_that_wears_it(name) -> None:
    """Seen from the front, the canonical face is within the head's outline."""
    shapes = [shape for part in heads.HEADS[name]() for shape in part.shapes]
    places = np.concatenate([shape.vertices for shape in shapes])
    face = canonical_face()[0] * 100
    for axis in (0, 1):
        assert places[:, axis].min() < face[:, axis].min()
        assert places[:, axis].max() > face[:, axis].max()
