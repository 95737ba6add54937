"""Skins and morph targets: where vertices go."""

import numpy as np
import pytest

from heimdall.errors import ModelError
from heimdall.render.content.posing import placed

STRIP = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 2, 0], [1, 2, 0]], float)
FACES = [0, 1, 2, 2, 1, 3, 2, 3, 4, 4, 3, 5]


def bending(writer, joint=1):
    """A strip 2 m high on two bones; the upper one, from y = 1 on, turns by 90 degrees in 1 s."""
    weights = [[1, 0, 0, 0]] * 2 + [[0.5, 0.5, 0, 0]] * 2 + [[0, 1, 0, 0]] * 2
    writer.mesh(
        STRIP,
        FACES,
        JOINTS_0=writer.array([[0, joint, 0, 0]] * 6, "u1"),
        WEIGHTS_0=writer.array(weights),
    )
    writer.bones()
    return writer.read()


def test_a_skin_bends_what_hangs_on_its_joints(writer):
    model = bending(writer)
    part = model.parts[0]
    rest = placed(part, model.skeleton.stance(), model.skins)
    assert np.allclose(rest, part.positions)
    bent = placed(part, model.skeleton.stance(model.animations["bend"], 1.0), model.skins)
    places = dict(zip(map(tuple, part.positions.tolist()), bent, strict=True))
    assert np.allclose(places[1, 0, 0], (1, 0, 0))  # on the lower bone
    assert np.allclose(places[0, 2, 0], (-1, 1, 0), atol=1e-6)  # on the upper one
    assert np.allclose(places[1, 1, 0], (0.5, 1.5, 0), atol=1e-6)  # half on each


def test_a_joint_that_a_skin_does_not_have_is_refused(writer):
    with pytest.raises(ModelError, match="joint 7 of 2"):
        bending(writer, joint=7)


def test_morph_targets_add_up_by_their_weights(writer):
    up, right = np.tile([0, 2.0, 0], (6, 1)), np.tile([4.0, 0, 0], (6, 1))
    mesh = writer.mesh(STRIP, FACES, targets=[up, right])
    writer.document["meshes"][mesh]["weights"] = [0.5, 0.25]
    model = writer.read()
    found = placed(model.parts[0], model.skeleton.stance(), model.skins)
    assert np.allclose(found - model.parts[0].positions, (1, 1, 0))
    assert model.low.tolist() == [1, 1, 0]


def test_an_animation_moves_the_weights_of_morph_targets(writer):
    writer.mesh(STRIP, FACES, targets=[np.tile([0, 0, 1.0], (6, 1))])
    sampler = {"input": writer.array([0.0, 2.0]), "output": writer.array([0.0, 1.0])}
    channel = {"sampler": 0, "target": {"node": 0, "path": "weights"}}
    writer.document["animations"] = [{"samplers": [sampler], "channels": [channel]}]
    model = writer.read()
    stance = model.skeleton.stance(model.animations["animation 0"], 1.0)
    found = placed(model.parts[0], stance, model.skins)
    assert np.allclose(found[:, 2], 0.5)
