"""What a file's materials become: alpha, pictures and where they lie."""

import numpy as np
import pytest

from heimdall.errors import ModelError

HALVES = np.zeros((4, 4, 4), np.uint8)  # opaque above, clear below
HALVES[:2] = 255


@pytest.mark.parametrize("mode", ["OPAQUE", "MASK", "BLEND"])
def test_alpha_modes_are_kept(square, mode):
    found = square(HALVES, alphaMode=mode, alphaCutoff=0.25).read().materials[0]
    assert (found.alpha, found.cutoff) == (mode, 0.25)


def test_what_is_called_see_through_and_is_not_is_opaque(square):
    assert square(np.full((4, 4, 3), 90), alphaMode="BLEND").read().materials[0].alpha == "OPAQUE"


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
