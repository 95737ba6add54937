"""Maps of rooms in files: read as a run begins, and followed by."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.tracking.slam.found import FoundPlane, Planes
from heimdall.tracking.slam.mapper import Mapper
from heimdall.tracking.slam.model import Keyframe, Map
from heimdall.tracking.slam.picture import Picture
from heimdall.tracking.slam.tracker import RoomTracker
from heimdall.tracking.world import room_file
from heimdall.tracking.world.setting import Setting
from tests.fuzz.damage import FLOATS, in_bytes, in_json, pick
from tests.fuzz.target import Target

LENS = Camera(96, 64, 80.0, 80.0, 47.5, 31.5)
POINTS = 60
WORDS = "room"


class Fuzzed(Target):
    """Files whose container is whole and whose arrays are not, and the other way round."""

    suffix = ".npz"

    @staticmethod
    def damaged(random: np.random.Generator) -> tuple[str, bytes]:
        raw = _whole()
        chance = random.random()
        if chance < 0.2:
            return "bytes", in_bytes(raw, random)
        with np.load(io.BytesIO(raw)) as file:
            parts = dict(file)
        if chance < 0.55:
            told = in_json(json.loads(parts[WORDS].tobytes()), random)
            parts[WORDS] = np.frombuffer(told, np.uint8)
        else:
            name = pick(sorted(parts), random)
            parts[name] = _changed(parts[name], random)
        content = io.BytesIO()
        np.savez(content, **parts)
        return "parts", content.getvalue()

    def run(self, name: str, raw: bytes) -> str:
        file = self.folder / f"damaged{self.suffix}"
        file.write_bytes(raw)
        kept = room_file.load(file)
        self.stage = "use"
        tracker = RoomTracker(Mapper(), kept.map)
        picture = _picture(1).grey
        states = {tracker.advance(picture, LENS, number).state for number in range(3)}
        room_file.save(file, kept, None)
        return "tracked" if "tracked" in states else "not found"


def _changed(array: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Another number, another shape, another kind, or fewer."""
    way, changed = int(random.integers(4)), array.copy()
    if way == 0 and array.size:
        flat = changed.reshape(-1)
        value = pick(FLOATS, random) if array.dtype.kind == "f" else int(random.integers(-9, 1000))
        flat[int(random.integers(flat.size))] = np.array(value).astype(array.dtype)
        return changed
    if way == 1:
        return changed.reshape(-1)[: max(0, array.size - 1)]
    return changed.astype(np.float32) if way == 2 else changed[None]


def _picture(seed: int) -> Picture:
    draw = np.random.default_rng(seed)
    return Picture(draw.integers(0, 255, (64, 96), np.uint8), LENS)


@cache
def _whole() -> bytes:
    draw, known = np.random.default_rng(7), Map()
    places = draw.uniform((-0.5, -0.3, 1), (0.5, 0.3, 2), (POINTS, 3))
    ids = np.arange(POINTS)
    for number in range(3):
        pose = Pose(np.eye(3), np.array([0.03 * number, 0, 0]))
        pixels = np.clip(LENS.pixels(pose.to_camera(places)), 0, (95, 63))
        each = Keyframe(number, _picture(number), pose, ids, pixels, pixels)
        each.observe(ids, pixels)
        each.features = ids, draw.integers(0, 255, (POINTS, 32), np.uint8)
        known.add(each)
    known.points.reach(POINTS)
    rays = LENS.rays(known.keyframes[0].pixels)[:, :2]
    known.points.begin(ids, rays, 1 / places[:, 2], 0.02, known.keyframes[0])
    corners = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
    still = Pose(np.eye(3), np.zeros(3))
    plane = FoundPlane(0, still, (1.0, 1.0), "horizontal", ids[:30], 0.001, corners)
    known.planes = Planes((plane,), np.array([0.0, 1, 0]))
    setting = Setting(0.8, np.eye(3), np.zeros(3), plane)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "room.npz"
        room_file.save(file, room_file.RoomMap(known, setting), None)
        return file.read_bytes()
