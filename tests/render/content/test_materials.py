"""What a file's materials become: alpha, pictures and where they lie."""

import numpy as np
import pytest

from heimdall.errors import ModelError
from tests.render.content.conftest import SQUARE, TWO

HALVES = np.zeros((4, 4, 4), np.uint8)  # opaque above, clear below
HALVES[:2] = 255


@pytest.mark.parametrize("mode", ["OPAQUE", "MASK", "BLEND"])
def test_alpha_modes_are_kept(square, mode):
    found = square(HALVES, alphaMode=mode, alphaCutoff=0.25).read().materials[0]
    assert (found.alpha, found.cutoff) == (mode, 0.25)


def test_what_is_called_see_through_and_is_not_is_opaque(square):
    assert square(np.full((4, 4, 3), 90), alphaMode="BLEND").read().materials[0].alpha == "OPAQUE"


COLOURS = {
    "floats": ([[1, 0, 0, 0.5]] * 4, "f4", {}),
    "bytes": ([[255, 0, 0, 128]] * 4, "u1", {"normalized": True}),
    "shorts": ([[65535, 0, 0, 32768]] * 4, "u2", {"normalized": True}),
    "one corner": ([[1, 0, 0, 0.5]] + [[1, 0, 0, 1]] * 3, "f4", {}),
}


@pytest.mark.parametrize(("values", "kind", "more"), COLOURS.values(), ids=COLOURS)
def test_what_is_see_through_by_the_colours_of_its_vertices_is(writer, values, kind, more):
    writer.mesh(SQUARE, TWO, {"alphaMode": "BLEND"}, COLOR_0=writer.array(values, kind, **more))
    found = writer.read()
    assert found.materials[found.parts[0].material].alpha == "BLEND"
    assert found.parts[0].colours[0].tolist() == [255, 0, 0, 128]


@pytest.mark.parametrize("values", [[[1, 0, 0, 1.0]] * 4, [[1, 0, 0.0]] * 4])
def test_colours_without_opacity_leave_it_opaque(writer, values):
    writer.mesh(SQUARE, TWO, {"alphaMode": "BLEND"}, COLOR_0=writer.array(values))
    assert [each.alpha for each in writer.read().materials] == ["OPAQUE"]


@pytest.mark.parametrize("mode", ["OPAQUE", "MASK"])
def test_colours_of_vertices_change_no_other_mode(writer, mode):
    writer.mesh(SQUARE, TWO, {"alphaMode": mode}, COLOR_0=writer.array([[1, 0, 0, 0.5]] * 4))
    assert [each.alpha for each in writer.read().materials] == [mode]


def test_one_material_may_be_opaque_on_one_mesh_and_see_through_on_another(writer):
    material = {"alphaMode": "BLEND", "name": "glass"}
    for alpha in (1.0, 0.5):
        colours = writer.array([[1, 1, 1, alpha]] * 4)
        writer.mesh(SQUARE, TWO, material if alpha == 1 else None, COLOR_0=colours)
    writer.document["meshes"][1]["primitives"][0]["material"] = 0
    writer.document["nodes"] = [{"mesh": 0}, {"mesh": 1}]
    writer.document["scenes"] = [{"nodes": [0, 1]}]
    found = writer.read()
    for part in found.parts:
        seen_through = found.materials[part.material].alpha == "BLEND"
        assert seen_through == (part.colours[0, 3] < 255)
    assert len(found.parts) == 2
    assert {each.name for each in found.materials} == {"glass"}


def test_a_texture_transform_moves_turns_and_scales_the_picture(square):
    writer = square(np.zeros((4, 4, 3)))
    info = writer.document["materials"][0]["pbrMetallicRoughness"]["baseColorTexture"]
    transform = {"offset": [0.5, 0.25], "rotation": np.pi / 2, "scale": [2.0, 3.0]}
    info["extensions"] = {"KHR_texture_transform": transform}
    part = writer.read().parts[0]
    places = dict(zip(map(tuple, part.positions.tolist()), part.uvs[:, :2], strict=True))
    # offset x rotation x scale, as the extension has it: (u, v) -> (3 v + 0.5, -2 u + 0.25)
    assert np.allclose(places[0, 0, 0], (3 * 1 + 0.5, 0.25), atol=1e-6)  # (0, 1)
    assert np.allclose(places[1, 1, 0], (0.5, -2 + 0.25), atol=1e-6)  # (1, 0)


def test_a_mirroring_sampler_becomes_a_picture_beside_its_mirror_image(square):
    writer = square(np.arange(4 * 4 * 3).reshape(4, 4, 3))
    writer.document["samplers"] = [{"wrapS": 33648}]
    writer.document["textures"][0]["sampler"] = 0
    model = writer.read()
    pixels = model.textures[0].levels[0]
    assert pixels.shape == (4, 8, 4)
    assert np.array_equal(pixels[:, :4], pixels[:, :3:-1])
    assert model.parts[0].uvs[:, 0].max() == 0.5  # the picture is the left half


def broken_pictures():
    yield "no file", {"uri": "none.png"}, "none.png"
    yield "outside", {"uri": "../../secret.png"}, "outside"
    yield "no picture", {"uri": "data:image/png;base64,AAAA"}, "not a picture"
    yield "nothing", {}, "neither a uri nor a bufferView"


@pytest.mark.parametrize(
    ("image", "said"),
    [each[1:] for each in broken_pictures()],
    ids=[each[0] for each in broken_pictures()],
)
def test_a_picture_that_cannot_be_read_is_one_clear_error(square, image, said):
    writer = square(np.zeros((4, 4, 3)))
    writer.document["images"] = [image]
    with pytest.raises(ModelError, match=said) as raised:
        writer.read()
    assert str(raised.value).startswith("a.gltf: ")


def test_large_pictures_are_refused_before_they_are_decoded(square, monkeypatch):
    monkeypatch.setattr("heimdall.render.content.images.MOST_PIXELS", 15)
    with pytest.raises(ModelError, match="4 x 4"):
        square(np.zeros((4, 4, 3))).read()
