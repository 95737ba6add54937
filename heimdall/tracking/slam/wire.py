"""Messages between the tracker and a mapper in another process: words as JSON, arrays as they are.

A message that is damaged raises ValueError, and never runs anything.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np

from heimdall.capture.lens import Camera, Motion
from heimdall.capture.pose import Pose
from heimdall.tracking.slam.found import FoundPlane, Planes
from heimdall.tracking.slam.model import POINTS, Keyframe, Map, NewKeyframe, Update
from heimdall.tracking.slam.picture import Picture

MOST_BYTES = 1 << 30
LENS = ("width", "height", "fx", "fy", "cx", "cy", "distortion", "fisheye")


@dataclass(eq=False)
class Message:
    """What is said: its ``kind``, ``words`` as JSON has them, and ``arrays``."""

    kind: str
    words: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


def write(stream: BinaryIO, message: Message) -> None:
    """Write one message."""
    arrays = {name: np.ascontiguousarray(each) for name, each in message.arrays.items()}
    shapes = {name: (each.dtype.str, each.shape) for name, each in arrays.items()}
    head = json.dumps({"kind": message.kind, "words": message.words, "arrays": shapes}).encode()
    stream.write(struct.pack("<Q", len(head)) + head)
    for each in arrays.values():
        stream.write(each.data if each.size else b"")
    stream.flush()


def read(stream: BinaryIO) -> Message | None:
    """The next message; None at the end. Raises ValueError for what is none."""
    size = stream.read(8)
    if len(size) < 8:
        return None
    length = struct.unpack("<Q", size)[0]
    if length > MOST_BYTES:
        raise ValueError("no message begins so")
    content = stream.read(length)
    if len(content) < length:
        return None
    head = json.loads(content)
    arrays = {}
    for name, (kind, shape) in head["arrays"].items():
        dtype = np.dtype(kind)
        count = math.prod(shape) * dtype.itemsize
        if dtype.hasobject or not 0 <= count <= MOST_BYTES:
            raise ValueError(f"no array is so: {name} {kind} {shape}")
        content = stream.read(count)
        if len(content) < count:
            return None
        arrays[name] = np.frombuffer(bytearray(content), dtype).reshape(shape)
    return Message(head["kind"], head["words"], arrays)


# --- what is said ----------------------------------------------------------------------------


def of_map(known: Map) -> Message:
    """All of a map, as it is now: what is adjusted in place later is copied."""
    message = Message("map", {"keyframes": [], "times": known.times})
    for each in known.keyframes.values():
        message.words["keyframes"].append(
            [each.number, each.depth, each.scale, _lens(each.picture.lens)]
        )
        message.arrays |= _named(each.number, pose=_flat(each.pose), grey=each.picture.grey,
                                 ids=each.ids, pixels=each.pixels,
                                 **_down(each.picture.lens))  # fmt: skip
    message.arrays |= {name: getattr(known.points, name).copy() for name in POINTS}
    _add_planes(message, known.planes)
    return message


def to_map(message: Message) -> Map:
    """The map that ``of_map`` told."""
    known, arrays = Map(), message.arrays
    for number, depth, scale, lens in message.words["keyframes"]:
        picture = Picture(arrays[f"grey {number}"], _camera(lens, arrays.get(f"down {number}")))
        ids, pixels = arrays[f"ids {number}"], arrays[f"pixels {number}"]
        each = Keyframe(number, picture, _pose(arrays[f"pose {number}"]), ids, pixels, pixels)
        each.observe(ids, pixels)
        each.depth, each.scale = depth, scale
        known.add(each)
    for name in POINTS:
        setattr(known.points, name, arrays[name])
    known.planes = _planes(message) or Planes()
    known.times = message.words["times"]
    return known


def of_keyframe(new: NewKeyframe) -> Message:
    """A keyframe on its way."""
    words = {"number": new.number, "reference": new.reference, "scale": new.scale,
             "times": new.times, "lens": _lens(new.picture.lens)}  # fmt: skip
    names = ("ids", "pixels", "fresh", "inverse", "spread")
    arrays = {name: getattr(new, name) for name in names}
    return Message(
        "keyframe",
        words,
        arrays | {"pose": _flat(new.relative), "grey": new.picture.grey} | _down(new.picture.lens),
    )


def to_keyframe(message: Message) -> NewKeyframe:
    """The keyframe that ``of_keyframe`` told."""
    words, arrays = message.words, message.arrays
    lens, pose = _camera(words["lens"], arrays.get("down")), _pose(arrays["pose"])
    picture = Picture(arrays["grey"], lens)
    rest = {name: arrays[name] for name in ("ids", "pixels", "fresh", "inverse", "spread")}
    return NewKeyframe(
        words["number"],
        picture,
        words["reference"],
        pose,
        **rest,
        scale=words["scale"],
        times=words["times"],
    )


def of_update(update: Update) -> Message:
    """What a mapper has found out."""
    message = Message("update", {"keyframes": list(update.keyframes), "dropped": update.dropped,
                                 "features": list(update.features), "times": update.times,
                                 "scales": list(update.scales.items())})  # fmt: skip
    for number, (pose, ids, pixels) in update.keyframes.items():
        message.arrays |= _named(number, pose=_flat(pose), ids=ids, pixels=pixels)
    for number, (owners, descriptors) in update.features.items():
        message.arrays |= _named(number, owners=owners, descriptors=descriptors)
    for name in ("ids", "position", "spread", "anchor", "gone"):
        message.arrays[name] = getattr(update, name)
    if update.planes is not None:
        _add_planes(message, update.planes)
    return message


def to_update(message: Message) -> Update:
    """The update that ``of_update`` told."""
    arrays = message.arrays
    keyframes = {
        number: (_pose(arrays[f"pose {number}"]), arrays[f"ids {number}"],
                 arrays[f"pixels {number}"])
        for number in message.words["keyframes"]
    }  # fmt: skip
    features = {
        number: (arrays[f"owners {number}"], arrays[f"descriptors {number}"])
        for number in message.words["features"]
    }
    rest = {name: arrays[name] for name in ("ids", "position", "spread", "anchor", "gone")}
    dropped, planes = tuple(message.words["dropped"]), _planes(message)
    scales = dict(message.words["scales"])
    return Update(
        keyframes,
        **rest,
        dropped=dropped,
        features=features,
        planes=planes,
        scales=scales,
        times=message.words["times"],
    )


def _add_planes(message: Message, found: Planes) -> None:
    words = [[each.id, each.kind, each.size, each.offset_sd] for each in found.planes]
    message.words["planes"] = words
    for each in found.planes:
        message.arrays |= _named(each.id, plane=_flat(each.pose), support=each.support,
                                 outline=each.outline)  # fmt: skip
    if found.up is not None:
        message.arrays["up"] = found.up


def _planes(message: Message) -> Planes | None:
    if "planes" not in message.words:
        return None
    arrays, planes = message.arrays, []
    for number, kind, (wide, deep), deviation in message.words["planes"]:
        pose, support = _pose(arrays[f"plane {number}"]), arrays[f"support {number}"]
        outline = arrays[f"outline {number}"]
        planes.append(FoundPlane(number, pose, (wide, deep), kind, support, deviation, outline))
    return Planes(tuple(planes), arrays.get("up"))


def _named(number: int, **arrays: np.ndarray) -> dict[str, np.ndarray]:
    return {f"{name} {number}": each for name, each in arrays.items()}


def _flat(pose: Pose) -> np.ndarray:
    return np.column_stack([pose.rotation, pose.translation])


def _pose(flat: np.ndarray) -> Pose:
    return Pose(flat[:, :3].copy(), flat[:, 3].copy())


def _lens(lens: Camera) -> list[Any]:
    return [getattr(lens, name) for name in LENS]


def _down(lens: Camera) -> dict[str, np.ndarray]:
    return {"down": np.asarray(lens.motion.down)} if lens.motion is not None else {}


def _camera(lens: list[Any], down: np.ndarray | None) -> Camera:
    named = dict(zip(LENS, lens, strict=False))  # maps kept before fisheyes were known have less
    motion = Motion(down) if down is not None else None
    return Camera(**{**named, "distortion": tuple(named["distortion"])}, motion=motion)
