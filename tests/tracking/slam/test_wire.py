"""What the tracker and the mapper's process tell each other."""

from __future__ import annotations

import io
import struct
from dataclasses import replace

import numpy as np
import pytest

from heimdall.capture.pose import Pose
from heimdall.tracking.slam import wire
from heimdall.tracking.slam.found import FoundPlane, Planes
from heimdall.tracking.slam.model import POINTS, Keyframe, Map, NewKeyframe, Update
from heimdall.tracking.slam.picture import Picture
from tests.tracking.slam.scene import CAMERA, look

STILL = Pose(np.eye(3), np.array([0.1, 0.2, 0.3]))


def said(message: wire.Message) -> wire.Message:
    stream = io.BytesIO()
    wire.write(stream, message)
    stream.seek(0)
    heard = wire.read(stream)
    assert heard is not None
    assert wire.read(stream) is None
    return heard


@pytest.fixture
def keyframe():
    pixels = np.array([[30.0, 40.0], [100.5, 60.25]])
    made = Keyframe(3, Picture(look(STILL), CAMERA), STILL, np.array([4, 9]), pixels, pixels)
    made.observe(np.array([4, 9]), pixels)
    return made


def test_a_map_on_its_way_does_not_change_with_the_trackers(keyframe):
    """Another thread writes it, while the tracker goes on."""
    known = Map()
    known.add(keyframe)
    known.points.reach(10)
    message = wire.of_map(known)
    for name in POINTS:
        assert not np.shares_memory(message.arrays[name], getattr(known.points, name)), name


def test_a_map_arrives_as_it_was_sent(keyframe):
    known = Map()
    known.add(keyframe)
    known.points.reach(10)
    known.points.position[4] = 1, 2, 3
    known.points.spread[4] = 0.01
    heard = wire.to_map(said(wire.of_map(known)))
    assert list(heard.keyframes) == [3]
    found = heard.keyframes[3]
    assert np.array_equal(found.picture.grey, keyframe.picture.grey)
    assert np.array_equal(found.ids, keyframe.ids)
    assert np.allclose(found.seen, keyframe.seen)
    assert np.array_equal(heard.points.position, known.points.position)
    heard.points.reach(5000)  # what arrives can be written to


@pytest.mark.parametrize(
    "bent", [{"distortion": (0.1,) * 4, "fisheye": True}, {"distortion": (0.1,) * 8}]
)
def test_lenses_arrive_as_they_were_sent(keyframe, bent):
    keyframe.picture.lens = replace(CAMERA, **bent)
    known = Map()
    known.add(keyframe)
    known.points.reach(10)
    heard = wire.to_map(said(wire.of_map(known)))
    assert heard.keyframes[3].picture.lens == keyframe.picture.lens


def test_a_map_from_before_fisheyes_were_known_is_read(keyframe):
    known = Map()
    known.add(keyframe)
    known.points.reach(10)
    message = wire.of_map(known)
    message.words["keyframes"][0][3].pop()
    assert wire.to_map(said(message)).keyframes[3].picture.lens == CAMERA


def test_a_keyframe_arrives_as_it_was_sent(keyframe):
    new = NewKeyframe(
        4, keyframe.picture, 3, STILL, keyframe.ids, keyframe.pixels,
        np.array([9]), np.array([0.5]), np.array([0.4]),
    )  # fmt: skip
    heard = wire.to_keyframe(said(wire.of_keyframe(new)))
    assert (heard.number, heard.reference) == (4, 3)
    assert np.array_equal(heard.fresh, [9])
    assert np.array_equal(heard.spread, [0.4])
    assert np.allclose(heard.relative.translation, STILL.translation)


def test_an_update_arrives_as_it_was_sent():
    ids = np.array([1, 5])
    update = Update(
        {2: (STILL, ids, np.ones((2, 2)))}, ids, np.ones((2, 3)), np.array([0.1, 0.2]),
        np.array([0, 2]), np.array([7]), (1,), {2: (ids, np.zeros((2, 32), np.uint8))},
    )  # fmt: skip
    heard = wire.to_update(said(wire.of_update(update)))
    assert list(heard.keyframes) == [2]
    assert heard.dropped == (1,)
    assert np.array_equal(heard.gone, [7])
    assert heard.features[2][1].dtype == np.uint8


def test_planes_arrive_as_they_were_sent():
    outline = np.array([[0.1, 0.2], [0.3, -0.4], [-0.1, 0.0]])
    plane = FoundPlane(7, STILL, (1.5, 0.25), "vertical", np.array([3, 8]), 0.002, outline)
    empty, ids = np.empty((0, 3)), np.empty(0, np.int64)
    planes = Planes((plane,), np.array([0, -1.0, 0]))
    sent = Update({}, ids, empty, np.empty(0), ids, ids, planes=planes)
    known = Map(planes=planes)
    update, as_map = said(wire.of_update(sent)), said(wire.of_map(known))
    for heard in (wire.to_update(update), wire.to_map(as_map)):
        assert np.array_equal(heard.planes.up, [0, -1, 0])
        (found,) = heard.planes.planes
        assert (found.id, found.kind, found.size) == (7, "vertical", (1.5, 0.25))
        assert found.offset_sd == 0.002
        assert np.array_equal(found.support, [3, 8])
        assert np.array_equal(found.outline, outline)
        assert np.array_equal(found.pose.translation, STILL.translation)
    without = Update({}, ids, empty, np.empty(0), ids, ids)
    assert wire.to_update(said(wire.of_update(without))).planes is None


def framed(arrays: bytes) -> bytes:
    head = b'{"kind": "a", "words": {}, "arrays": ' + arrays + b"}"
    return struct.pack("<Q", len(head)) + head + b"x" * 16


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (struct.pack("<Q", 1 << 40), "no message"),
        (struct.pack("<Q", 4) + b"nono", "Expecting value"),
        (framed(b'{"b": ["|O", [2]]}'), "no array"),
        (framed(b'{"b": ["<f8", [-2]]}'), "no array"),
    ],
)
def test_a_damaged_message_is_an_error_and_runs_nothing(content, why):
    with pytest.raises(ValueError, match=why):
        wire.read(io.BytesIO(content))


def test_a_message_that_is_cut_off_is_the_end():
    stream = io.BytesIO()
    wire.write(stream, wire.Message("a", {}, {"b": np.ones(100)}))
    for length in (0, 5, 20, 300):
        assert wire.read(io.BytesIO(stream.getvalue()[:length])) is None
