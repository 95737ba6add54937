"""The bundled furniture is what its script makes, at true size."""

import importlib
from pathlib import Path

import pytest

from heimdall.render.content.reading import read
from heimdall.system.paths import ASSETS

furniture = importlib.import_module("scripts.furniture")

SIZES = {  # width, height and depth in metres
    "couch": (2.1, 0.87, 0.95),
    "chair": (0.45, 0.84, 0.49),
    "side-table": (0.46, 0.50, 0.46),
    "lamp": (0.41, 1.50, 0.41),
    "shelf": (0.80, 1.80, 0.28),
}


def test_every_piece_is_bundled():
    bundled = {path.stem for path in Path(ASSETS / "content").glob("*.glb")}
    assert set(furniture.PIECES) == set(SIZES) <= bundled


@pytest.mark.parametrize("name", SIZES)
def test_a_piece_is_of_true_size_stands_on_the_floor_and_costs_little(name):
    model = read(ASSETS / "content" / f"{name}.glb")
    assert model.size == pytest.approx(SIZES[name], abs=0.02)
    assert model.low[1] == pytest.approx(0, abs=0.01)
    assert model.triangles < 3000
    assert model.notes == ()


@pytest.mark.parametrize("name", SIZES)
def test_what_is_bundled_is_what_the_script_makes(name, tmp_path):
    again = tmp_path / f"{name}.glb"
    again.write_bytes(furniture.glb(name, furniture.PIECES[name]()))
    made, stored = read(again), read(ASSETS / "content" / f"{name}.glb")
    assert made.materials == stored.materials
    for new, old in zip(made.parts, stored.parts, strict=True):
        assert new.positions == pytest.approx(old.positions, abs=1e-5)
        assert (new.indices == old.indices).all()


@pytest.mark.parametrize("name", ["couch", "chair"])
def test_what_is_upholstered_has_its_fabric_first(name):
    model = read(ASSETS / "content" / f"{name}.glb")
    assert model.materials[0].name == "fabric"
    assert model.materials[0].base_map is not None
    assert model.textures[model.materials[0].base_map].doubled == (True, True)
