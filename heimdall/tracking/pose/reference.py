"""A picture whose points have known places in the world: a target, or a remembered view.

Both are followed by the same means. Where the pose is nearly known, the picture is warped to what
the camera should see, and its points are found again close to where they should be: always against
the original, so that nothing drifts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import cv2
import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.tracking.flow import followed

SIDE_PX = 420  # of what is compared, at most: a target that fills the picture needs no more
MARGIN_PX = 14
WINDOW = 13
LEVELS = 3
STEPS = 12, 0.01
PATCH = 4  # pixels to each side of a point that are compared
GLIMPSED = 0.4  # correlation where a point is expected, which may be pixels off
ALIKE = 0.7  # correlation of a point's surroundings with what they should be
LEAST_POINTS = 6
NEAREST_M = 0.01
MOST_POINTS = 90
EDGE_PX = 5
_GRID = np.stack(np.meshgrid(np.arange(-PATCH, PATCH + 1), np.arange(-PATCH, PATCH + 1)), axis=-1)
_OFFSETS = _GRID.reshape(-1, 2).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Seen:
    """Points (n, 3) that were found at ``pixels`` (n, 2), out of ``expected`` ones that the pose
    puts into the picture; ``numbers`` (n,) are theirs in the reference."""

    points: np.ndarray
    pixels: np.ndarray
    expected: int
    numbers: np.ndarray


@dataclass(eq=False)
class Reference:
    """``picture`` grey uint8; ``places`` (n, 2) in it of ``points`` (n, 3), metres; ``levels`` (n,)
    says in which halving of the picture a point was found."""

    picture: np.ndarray
    places: np.ndarray
    points: np.ndarray
    levels: np.ndarray
    pyramid: list[np.ndarray] = field(init=False)

    def __post_init__(self) -> None:
        self.pyramid = [self.picture]
        while min(self.pyramid[-1].shape) > 48 and len(self.pyramid) < 6:
            self.pyramid.append(cv2.pyrDown(self.pyramid[-1]))


def corners_of(picture: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The best corners of a picture in each of its halvings: places (n, 2), levels (n,)."""
    places, levels, level = [], [], 0
    while min(picture.shape) > 24 and level < 6:
        apart = max(3.0, math.sqrt(picture.size / MOST_POINTS) * 0.6)
        found = cv2.goodFeaturesToTrack(picture, MOST_POINTS, 0.02, apart, blockSize=5)
        if found is not None:
            there = (found[:, 0] + 0.5) * 2**level - 0.5
            places.append(there)
            levels.append(np.full(len(there), level))
        picture, level = cv2.pyrDown(picture), level + 1
    if not places:
        return np.empty((0, 2)), np.empty(0, int)
    return np.concatenate(places), np.concatenate(levels)


def register(
    grey: np.ndarray,
    camera: Camera,
    reference: Reference,
    pose: Pose,
    side_px: int = SIDE_PX,
    most: int = MOST_POINTS,
) -> Seen | None:
    """The points of ``reference`` in ``grey``, a picture of ``camera``, which is about at ``pose``;
    None where too few can be in it, or are seen from behind. The smaller the pictures that are
    compared (``side_px``), the farther points may be off, and the less exactly they are found.
    ``most`` points are compared."""
    there = pose.to_camera(reference.points)
    front = there[:, 2] > NEAREST_M
    if front.sum() < LEAST_POINTS:
        return None
    there = np.where(front[:, None], there, (0.0, 0.0, 1.0))
    pixels = camera.pixels(there)
    inside = front & (pixels > EDGE_PX).all(axis=1)
    inside &= (pixels < np.array(camera.size) - 1 - EDGE_PX).all(axis=1)
    if inside.sum() < LEAST_POINTS:
        return None
    homography = _homography(reference.places[front], pixels[front])
    if homography is None:
        return None
    middle = reference.places[inside].mean(axis=0)
    grown = _growth(homography, middle)
    if grown is None:
        return None
    low = np.maximum(np.floor(pixels[inside].min(axis=0)) - MARGIN_PX, 0).astype(int)
    high = np.minimum(np.ceil(pixels[inside].max(axis=0)) + MARGIN_PX + 1, camera.size).astype(int)
    scale = min(1.0, side_px / float(max(high - low)))
    level = math.floor(math.log2(1 / (grown * scale)) + 0.5)
    level = min(max(level, 0), len(reference.pyramid) - 1)
    chosen = _chosen(reference, inside, level, most)
    if len(chosen) < LEAST_POINTS:
        return None
    size = tuple(max(2 * WINDOW, math.ceil(each * scale)) for each in high - low)
    into = np.array([[scale, 0, -low[0] * scale], [0, scale, -low[1] * scale], [0, 0, 1.0]])
    into[:2, 2] += 0.5 * scale - 0.5  # pixels are counted from the middle of the first one
    up = 2.0**level
    finer = np.array([[up, 0, (up - 1) / 2], [0, up, (up - 1) / 2], [0, 0, 1.0]])
    expected = cv2.warpPerspective(
        reference.pyramid[level],
        into @ homography @ finer,
        size,
        flags=cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_REPLICATE,
    )
    actual = grey[low[1] : high[1], low[0] : high[0]]
    if scale < 1 or actual.shape[::-1] != size:
        actual = _resized(actual, scale, size)
    start = _through(into @ homography, reference.places[chosen])
    guess = _through(into, pixels[chosen])
    found, good = _followed(expected, actual, start, guess)
    back = np.linalg.inv(into)
    mine = chosen[good]
    return Seen(reference.points[mine], _through(back, found[good]), len(chosen), mine)


def _resized(picture: np.ndarray, scale: float, size: tuple[int, ...]) -> np.ndarray:
    step = 2 ** int(math.log2(1 / scale)) if scale < 0.5 else 1
    rows, columns = (side // step for side in picture.shape)
    if step > 1 and rows and columns:
        whole = picture[: rows * step, : columns * step]
        picture = cv2.resize(whole, (columns, rows), interpolation=cv2.INTER_AREA)
        scale *= step
    into = np.array([[scale, 0, 0.5 * scale - 0.5], [0, scale, 0.5 * scale - 0.5]])
    return cv2.warpAffine(picture, into, size, borderMode=cv2.BORDER_REPLICATE)


def _chosen(reference: Reference, inside: np.ndarray, level: int, most: int) -> np.ndarray:
    """Points of the level that fits, else of all of them; spread evenly if they are many."""
    chosen = np.flatnonzero(inside & (reference.levels == level))
    if len(chosen) < LEAST_POINTS * 2:
        chosen = np.flatnonzero(inside)
    if len(chosen) > most:
        chosen = chosen[np.linspace(0, len(chosen) - 1, most).astype(int)]
    return chosen


def _homography(places: np.ndarray, pixels: np.ndarray) -> np.ndarray | None:
    if len(places) > 60:  # as good, and faster
        step = len(places) // 40
        places, pixels = places[::step], pixels[::step]
    found, _ = cv2.findHomography(places, pixels, 0)
    return found if found is not None and np.isfinite(found).all() else None


def _growth(homography: np.ndarray, at: np.ndarray) -> float | None:
    """By how much a picture grows there in each direction (the geometric mean); None: it is seen
    from behind, or from its edge."""
    x, y, w = homography @ np.array([*at, 1.0])
    if abs(w) < 1e-12:
        return None
    rows = homography[:2, :2] - np.outer((x / w, y / w), homography[2, :2])
    area = float(np.linalg.det(rows / w))
    return math.sqrt(area) if area > 1e-6 else None


def _through(matrix: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points (n, 2) through a homography."""
    moved = np.column_stack([points, np.ones(len(points))]) @ matrix.T
    return moved[:, :2] / moved[:, 2:]


def _followed(
    expected: np.ndarray, actual: np.ndarray, start: np.ndarray, guess: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where points at ``start`` of one picture are in the other, near ``guess``, and which of them
    look there as they should."""
    begin, found = start.astype(np.float32), guess.astype(np.float32)
    before = patches(expected, begin)
    after = patches(actual, found)
    shown = alike(before, after) > GLIMPSED  # what hides a part says nothing of the light
    if shown.sum() < LEAST_POINTS:
        shown[:] = True
    gain = float(np.clip(after[shown].std() / max(float(before[shown].std()), 1.0), 0.1, 8.0))
    lift = float(after[shown].mean() - gain * before[shown].mean())
    lit = np.clip(np.arange(256) * gain + lift, 0, 255).round().astype(np.uint8)
    found, good = followed(cv2.LUT(expected, lit), actual, begin, found, LEVELS, WINDOW, STEPS)
    good &= ((found > 1) & (found < np.array(actual.shape[::-1]) - 2)).all(axis=1)
    good &= alike(before, patches(actual, found)) > ALIKE
    return found, good


def patches(picture: np.ndarray, places: np.ndarray) -> np.ndarray:
    """What is around each place, (n, pixels) float32."""
    where = (places[:, None] + _OFFSETS).astype(np.float32)
    sampled = cv2.remap(
        picture, where[..., 0], where[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    )
    return sampled.astype(np.float32)


def alike(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The correlation of each pair of patches, (n,); 0 where one is plain."""
    one = one - one.mean(axis=1, keepdims=True)
    other = other - other.mean(axis=1, keepdims=True)
    sizes = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    product = (one * other).sum(axis=1)
    return np.where(sizes > 200.0, product / np.maximum(sizes, 1e-6), 0.0)
