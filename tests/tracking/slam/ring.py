"""A camera that goes round in a ring of painted boards, and the map that it would have of them with
drift."""

from __future__ import annotations

import cv2
import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.tracking.slam.follow import corners
from heimdall.tracking.slam.mapper import Mapper
from heimdall.tracking.slam.model import UNKNOWN, Keyframe, Map, NewKeyframe
from heimdall.tracking.slam.picture import Picture
from heimdall.tracking.slam.similarity import Similarities
from tests.tracking.slam.scene import CAMERA, texture

ROUND = 24  # keyframes
BOARDS = 12
EACH = 90  # points of a keyframe
NOTHING = np.empty(0, np.int64)


def standing(at: int) -> Pose:
    """Where the camera is for a keyframe: it looks outwards."""
    angle = 2 * np.pi * at / ROUND
    turned = cv2.Rodrigues(np.array([0, angle, 0]))[0].T
    return Pose(turned, np.array([0, 0, -0.5]) + turned @ (0, 0.05 * np.sin(3 * angle), 0))


def _boards() -> list[tuple[np.ndarray, np.ndarray]]:
    """Of each the matrix from its picture to the world, (3, 3), and the picture."""
    found = []
    for number in range(BOARDS):
        turn = cv2.Rodrigues(np.array([0, 2 * np.pi * number / BOARDS, 0]))[0]
        far = 2.6 if number % 2 else 3.0
        corner, across, down = turn @ (-0.62, -1, far), turn @ (1.24, 0, 0.3), turn @ (0, 2, 0)
        found.append((np.column_stack([across / 256, down / 256, corner]), texture(number, 256)))
    return found


PAINTED = _boards()


def look(pose: Pose, camera: Camera = CAMERA) -> tuple[np.ndarray, np.ndarray]:
    """The picture (h, w) uint8, and which board is at each pixel, -1: none."""
    picture = np.full((camera.height, camera.width), 90, np.uint8)
    which = np.full(picture.shape, -1)
    for number, (plane, pattern) in enumerate(PAINTED):
        turned = pose.rotation @ plane
        turned[:, 2] += pose.translation
        ends = np.array([[0, 0, 1], [256, 0, 1], [256, 256, 1], [0, 256, 1]]) @ turned.T
        if (ends[:, 2] < 0.2).any():
            continue
        seen = cv2.warpPerspective(pattern, camera.matrix @ turned, camera.size)
        there = cv2.warpPerspective(np.full_like(pattern, 255), camera.matrix @ turned, camera.size)
        picture[there > 127], which[there > 127] = seen[there > 127], number
    grain = np.random.default_rng(3).normal(0, 2, picture.shape)
    return np.clip(picture + grain, 0, 255).astype(np.uint8), which


class Ring:
    """``mapper`` has the first ``ROUND`` keyframes, each of which is off by another ``drift``
    (7,): the logarithm of a similarity. ``go_on`` adds one more."""

    def __init__(self, drift: np.ndarray, mapper: Mapper) -> None:
        self.drift, self.mapper = drift, mapper
        self._places: list[np.ndarray] = []  # true ones of points, by the keyframe that has them
        self._next = 0
        self.map = Map()
        for at in range(ROUND):
            self._keep(at)
        self.poses = {each.number: each.pose for each in self.map.keyframes.values()}
        self._take(mapper.begin(self.map))

    def drifted(self, at: int) -> Similarities:
        """The true world to the one as the map has it at a keyframe."""
        return Similarities.exp(at * self.drift[None])

    def off(self) -> float:
        """How far, at worst, keyframes are from where they were, by the first one's axes."""
        far = [np.linalg.norm(pose.position - standing(at).position)
               for at, pose in self.poses.items()]  # fmt: skip
        return float(max(far))

    def go_on(self, picture: np.ndarray | None = None):
        """One more keyframe, of the true ``picture`` if none is given. Returns the update."""
        at = max(self.poses) + 1
        pose = standing(at)
        seen, which = look(pose)
        there = Picture(seen if picture is None else picture, CAMERA)
        ids, pixels = self._seen(at, pose, which)
        fresh, new, inverse = self._fresh(there, pixels, pose, which)
        before = standing(at - 1)
        relative = pose.after(before.inverse)
        scale = float(self.drifted(at - 1).scale[0])
        keyframe = NewKeyframe(
            at, there, at - 1, Pose(relative.rotation, scale * relative.translation),
            np.concatenate([ids, fresh]), np.concatenate([pixels, new]), fresh, inverse / scale,
            np.full(len(new), UNKNOWN),
        )  # fmt: skip
        update = self.mapper.add(keyframe)
        self._take(update)
        return update

    def _take(self, update) -> None:
        self.poses |= {number: pose for number, (pose, _, _) in update.keyframes.items()}

    def _keep(self, at: int) -> None:
        pose = standing(at)
        seen, which = look(pose)
        picture = Picture(seen, CAMERA)
        ids, pixels = self._seen(at, pose, which)
        fresh, new, inverse = self._fresh(picture, pixels, pose, which)
        off = self.drifted(at)
        scale = float(off.scale[0])
        there = Similarities.of([pose]).after(off.inverse).pose(0)
        keyframe = Keyframe(at, picture, there, NOTHING, new[:0], new[:0])
        keyframe.observe(np.concatenate([ids, fresh]), np.concatenate([pixels, new]))
        keyframe.depth = scale * float(1 / np.median(inverse))
        self.map.points.reach(self._next)
        self.map.points.begin(fresh, CAMERA.rays(new)[:, :2], inverse / scale, 0.02, keyframe)
        self.map.add(keyframe)

    def _fresh(
        self, picture: Picture, taken: np.ndarray, pose: Pose, which: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points that nothing has seen before: their ids, pixels and inverse depths."""
        new = corners(picture, taken, EACH)
        inverse, ok = self._inverse(new, pose, which)
        new, inverse = new[ok], inverse[ok]
        fresh = np.arange(self._next, self._next + len(new))
        self._places.append(pose.to_world(CAMERA.rays(new) / inverse[:, None]))
        self._next += len(new)
        return fresh, new, inverse

    def _seen(self, at: int, pose: Pose, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Points of the last three keyframes, and where they are seen."""
        first = max(0, at - 3)
        counts = np.cumsum([0, *(len(each) for each in self._places)])
        if not len(self._places):
            return NOTHING, np.empty((0, 2))
        places = np.concatenate(self._places[first:])
        ids = np.arange(counts[first], counts[-1])
        there = pose.to_camera(places)
        ids, places = ids[there[:, 2] > 0.2], places[there[:, 2] > 0.2]
        pixels = CAMERA.pixels(pose.to_camera(places))
        inside = ((pixels > 10) & (pixels < np.array(CAMERA.size) - 10)).all(axis=1)
        ids, places, pixels = ids[inside], places[inside], pixels[inside]
        inverse, ok = self._inverse(pixels, pose, which)
        ok &= np.abs(pose.to_camera(places)[:, 2] * inverse - 1) < 0.01  # not hidden
        return ids[ok], pixels[ok]

    @staticmethod
    def _inverse(pixels: np.ndarray, pose: Pose, which: np.ndarray) -> tuple[np.ndarray, ...]:
        """Inverse depths of what is seen there, and where there is something."""
        x, y = pixels.round().astype(int).T
        boards, rays = which[y, x], CAMERA.rays(pixels)
        inverse = np.ones(len(pixels))
        for number in np.unique(boards[boards >= 0]).tolist():
            plane = PAINTED[number][0]
            normal = np.cross(plane[:, 0], plane[:, 1])
            turned, place = pose.rotation @ normal, pose.to_camera(plane[:, 2])
            mine = boards == number
            inverse[mine] = rays[mine] @ turned / (place @ turned)
        return inverse, boards >= 0
