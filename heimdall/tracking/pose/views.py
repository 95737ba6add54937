"""What is around the targets, remembered: views of it whose points have places in the world.

A view is a frame that was taken where the pose was well known. Its corners are followed, always
from that frame, while the camera moves on, until the lines of sight say where each lies. From then
on the view is a reference like a target, and its features find the camera again.
"""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.errors import ConfigError
from heimdall.system import paths
from heimdall.tracking.pose.features import matched
from heimdall.tracking.pose.finding import halved
from heimdall.tracking.pose.reference import Reference, register
from heimdall.tracking.pose.solve import NEAREST_M, flipped, refine, to_plane

POINTS = 260  # of a view, at most
LEAST_READY = 24
PARALLAX = math.radians(2.0)  # between lines of sight that say how far a point is
LEAST_SIGHTS = 4
OFF_PX = 2.0  # of a point from where it should be, in its first view and the newest
PATIENCE = 120  # frames for a view to become ready
MOST_VIEWS = 40
NEAR = 0.35  # radians, and share of the distance: a view is good for so much
AT_ONCE = 4  # views that one frame is compared with
LEAST_MATCHES = 14  # of features, that say where the camera is
RELOCALISED_PX = 8.0  # in a picture 1280 wide
TRIES = 300  # of RANSAC, once for what all views say: once for each took twice as long
FORMAT = 1
MOST_BYTES = 1 << 28  # of a map, with all that is in it


@dataclass(eq=False)
class View:
    """``reference`` over the frame, at half its size if it is large; ``descriptors`` (n, 32) of its
    points. While it is not ``ready`` places of points are guesses on the target's plane."""

    pose: Pose
    reference: Reference
    descriptors: np.ndarray
    far: float  # metres to what is seen
    ready: bool = False
    age: int = 0

    def __post_init__(self) -> None:
        count = len(self.reference.places)
        self._normal, self._pull = np.zeros((count, 3, 3)), np.zeros((count, 3))
        self._sights, self._spread, self._off = np.zeros((3, count))
        self._first: np.ndarray | None = None  # the lines of sight of this frame itself

    def away(self, pose: Pose) -> float:
        """How differently the camera stands at ``pose``: 0 as it did here, 1 too far to help."""
        cosine = float(np.clip(self.pose.rotation[2] @ pose.rotation[2], -1, 1))
        moved = float(np.linalg.norm(self.pose.position - pose.position)) / self.far
        return max(math.acos(cosine), moved) / NEAR

    def sighted(self, numbers: np.ndarray, rays: np.ndarray, pose: Pose) -> None:
        """Add a line of sight to each of these points; ``rays`` (n, 3) before the camera."""
        directions = rays @ pose.rotation
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        if self._first is None:
            self._first = directions
        across = np.eye(3) - directions[:, :, None] * directions[:, None]
        self._normal[numbers] += across
        self._pull[numbers] += across @ pose.position
        self._sights[numbers] += 1
        angles = np.arccos(np.clip((directions * self._first[numbers]).sum(axis=1), -1, 1))
        self._spread[numbers] = np.maximum(self._spread[numbers], angles)

    def observe(self, grey: np.ndarray, camera: Camera, pose: Pose) -> None:
        """See where the points are now, and place those whose lines of sight say so."""
        seen = register(grey, camera, self.reference, pose)
        if seen is None:
            return
        self.sighted(seen.numbers, camera.rays(seen.pixels), pose)
        known = (self._spread > PARALLAX) & (self._sights >= LEAST_SIGHTS)
        if not known.any():
            return
        old = self.reference
        pull = self._pull[known][:, :, None]
        old.points[known] = np.linalg.solve(self._normal[known], pull)[:, :, 0]
        off = np.minimum(_off(camera, pose.to_camera(old.points[seen.numbers]), seen.pixels), 20)
        self._off[seen.numbers] = 0.7 * self._off[seen.numbers] + 0.3 * off
        before = self.pose.to_camera(old.points)
        first = _off(camera.scaled(*old.picture.shape[::-1]), before, old.places)
        good = known & (self._off < OFF_PX) & (first < OFF_PX)
        if good.sum() >= max(LEAST_READY, 0.4 * known.sum()) and known.sum() > 0.5 * len(known):
            levels = np.zeros(int(good.sum()), int)
            self.reference = Reference(old.picture, old.places[good], old.points[good], levels)
            self.descriptors = self.descriptors[good]
            self.far = float(np.median(before[good][:, 2]))
            self.ready = True


class Views:
    """All that is remembered; ``learn`` with each frame whose pose is well known. ``focal``: how
    many times longer than the guess the lens was found to be by which it was seen."""

    def __init__(self) -> None:
        self.focal = 1.0
        self._views: list[View] = []
        self._finder = cv2.ORB.create(700, 1.25, 5)
        self._turn = 0

    def __len__(self) -> int:
        return sum(each.ready for each in self._views)

    def begin_anew(self, focal: float) -> None:
        """Forget all: it was seen by another lens than that was taken for."""
        self._views.clear()
        self.focal = focal

    def near(self, pose: Pose, most: int) -> list[View]:
        """The views that help most at ``pose``."""
        ready = [(each.away(pose), number) for number, each in enumerate(self._views) if each.ready]
        return [self._views[number] for away, number in sorted(ready)[:most] if away < 2.5]

    def learn(self, grey: np.ndarray, camera: Camera, pose: Pose, taken: np.ndarray | None) -> None:
        """One more frame at a pose that is well known. ``taken`` (n, 2): the outline of what is
        followed anyway."""
        pending = [each for each in self._views if not each.ready]
        for each in pending:
            each.age += 1
            if each.age % 2:
                each.observe(grey, camera, pose)
            if each.age > PATIENCE or each.away(pose) > 3:
                self._views.remove(each)
        if not pending and all(each.away(pose) > 1 for each in self._views):
            view = self._new(grey, camera, pose, taken)
            if view is not None:
                self._views.append(view)
                if len(self._views) > MOST_VIEWS:
                    del self._views[1]

    def _new(
        self, grey: np.ndarray, camera: Camera, pose: Pose, taken: np.ndarray | None
    ) -> View | None:
        small, scale = halved(grey)
        open_to = np.full(small.shape, 255, np.uint8)
        if taken is not None:
            hull = cv2.convexHull((taken * scale).round().astype(np.int32))
            cv2.fillConvexPoly(open_to, hull, 0)
        keypoints = _spread_out(self._finder.detect(small, open_to), small.shape)
        if len(keypoints) < LEAST_READY:
            return None
        described, descriptors = self._finder.compute(small, keypoints)
        places = np.array([each.pt for each in described])
        rays = camera.scaled(*small.shape[::-1]).rays(places)
        far = float(np.linalg.norm(pose.position))
        depths = to_plane(rays, pose, 3 * far)
        points = pose.to_world(rays * np.where(np.isnan(depths), far, depths)[:, None])
        reference = Reference(small, places, points, np.zeros(len(places), int))
        view = View(pose, reference, descriptors, far)
        view.sighted(np.arange(len(places)), rays, pose)
        return view

    def relocalise(self, grey: np.ndarray, camera: Camera) -> Pose | None:
        """Where the camera is, by features of some views, each time of others; to be checked."""
        ready = [each for each in self._views if each.ready]
        if not ready:
            return None
        self._turn = (self._turn + AT_ONCE) % len(ready) if len(ready) > AT_ONCE else 0
        views = (ready * 2)[self._turn :][: min(AT_ONCE, len(ready))]
        return relocalised(self._finder, views, grey, camera)

    def save(self, path: Path) -> None:
        """Keep what is ready. Raises ConfigError where that cannot be written."""
        parts: dict[str, np.ndarray] = {"focal": np.array(self.focal)}
        for number, each in enumerate(view for view in self._views if view.ready):
            picture = cv2.imencode(".png", each.reference.picture)[1]
            values = {
                "rotation": each.pose.rotation,
                "translation": each.pose.translation,
                "picture": picture,
                "places": each.reference.places,
                "points": each.reference.points,
                "descriptors": each.descriptors,
            }
            parts |= {f"{name}_{number}": value for name, value in values.items()}
        keep(path, parts)

    def load(self, path: Path) -> None:
        """Remember what ``save`` kept. Raises ConfigError for a file that is damaged, or no map."""
        with kept(path) as file:
            focal = float(file["focal"]) if "focal" in file.files else 1.0
            if not 0 < focal < math.inf:
                raise ValueError("its lens is none")
            count = sum(name.startswith("picture_") for name in file.files)
            if not count:
                raise wrong_kind(path, "a room", "targets")
            self._views += [_restored(file, number) for number in range(count)]
            self.focal = focal


def keep(path: Path, parts: dict[str, np.ndarray]) -> None:
    """Write a map, whole or not at all. Raises ConfigError where that is not possible."""
    content = io.BytesIO()
    np.savez(content, format=np.array(FORMAT), **parts)  # type: ignore[arg-type]
    try:
        paths.replace_file(path, content.getvalue())
    except OSError as error:
        raise ConfigError(f"cannot write map {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def kept(path: Path) -> Iterator[np.lib.npyio.NpzFile]:
    """A map that ``keep`` wrote. Whatever goes wrong while it is read is a ConfigError."""
    try:
        with np.load(path, allow_pickle=False) as file:
            if sum(each.file_size for each in file.zip.infolist()) > MOST_BYTES:
                raise ValueError("it is too large")
            if int(file["format"]) != FORMAT:
                raise ValueError("of another version")
            yield file
    except ConfigError:
        raise
    except Exception as error:  # zip, numpy and OpenCV each have errors of their own
        raise ConfigError(f"map {path} cannot be read ({error}); delete it") from error


def wrong_kind(path: Path, found: str, wanted: str) -> ConfigError:
    """The map of another world, perhaps of another app: it must not be deleted for this one."""
    return ConfigError(
        f"map {path} is of {found}, not of {wanted}: give this world another map, "
        "for that one may be another app's"
    )


def _restored(file: np.lib.npyio.NpzFile, number: int) -> View:
    def value(name: str) -> np.ndarray:
        return np.asarray(file[f"{name}_{number}"])

    picture = cv2.imdecode(value("picture"), cv2.IMREAD_GRAYSCALE)
    places, points, descriptors = value("places"), value("points"), value("descriptors")
    if picture is None or not len(places) == len(points) == len(descriptors):
        raise ValueError("its parts do not fit")
    if not np.isfinite(points).all():
        raise ValueError("points are not finite")
    pose = Pose(value("rotation"), value("translation"))
    reference = Reference(picture, places, points, np.zeros(len(places), int))
    return View(pose, reference, descriptors, float(np.linalg.norm(pose.position)), ready=True)


def map_file(name: str) -> Path:
    """Where the map of that name is kept. Apps that give the same name have the same map."""
    return paths.cache_dir() / "maps" / f"{paths.slug(name)}.npz"


def _spread_out(keypoints: Sequence[cv2.KeyPoint], shape: tuple[int, ...]) -> list[cv2.KeyPoint]:
    """The strongest of each cell."""
    cell = max(8, int(math.sqrt(shape[0] * shape[1] / POINTS)))
    best: dict[tuple[int, int], cv2.KeyPoint] = {}
    for each in keypoints:
        key = (int(each.pt[0]) // cell, int(each.pt[1]) // cell)
        if key not in best or best[key].response < each.response:
            best[key] = each
    return list(best.values())


def _off(camera: Camera, there: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    """How far points (n, 3) before the camera are from ``pixels`` (n, 2); infinite behind it."""
    off = np.full(len(there), np.inf)
    front = there[:, 2] > NEAREST_M
    off[front] = np.linalg.norm(camera.pixels(there[front]) - pixels[front], axis=1)
    return off


def relocalised(
    finder: cv2.ORB, views: Sequence[View], grey: np.ndarray, camera: Camera
) -> Pose | None:
    """Where most of the features say that the camera is, if that many do; to be checked."""
    small, _ = halved(grey)
    keypoints, descriptors = finder.detectAndCompute(small, None)
    if descriptors is None or not views:
        return None
    places = np.array([each.pt for each in keypoints])
    points, seen = [], []
    for view in views:
        pairs = matched(descriptors, view.descriptors, view.reference.places)
        points.append(view.reference.points[pairs[:, 1]])
        seen.append(places[pairs[:, 0]])
    lens = camera.scaled(*small.shape[::-1])
    return agreed(lens, np.concatenate(points), np.concatenate(seen))


def agreed(lens: Camera, points: np.ndarray, seen: np.ndarray) -> Pose | None:
    """The pose that most pairs of ``points`` (n, 3) and pixels (n, 2) say, None where too few do.
    Much of the world is a table, which looks nearly the same tilted the other way, so that RANSAC
    may have taken either."""
    if len(points) < LEAST_MATCHES:
        return None
    ok, turn, move, agree = cv2.solvePnPRansac(
        points, lens.straightened(seen), lens.matrix, None,
        iterationsCount=TRIES, reprojectionError=RELOCALISED_PX * lens.width / 1280,
        flags=cv2.SOLVEPNP_AP3P,
    )  # fmt: skip
    if not ok or agree is None or len(agree) < LEAST_MATCHES:
        return None
    points, seen, pose = points[agree[:, 0]], seen[agree[:, 0]], Pose.of(turn, move)
    both = (pose, flipped(pose, points.mean(axis=0)))
    fits = [fit for each in both if (fit := refine(lens, points, seen, each)) is not None]
    best = max(fits, key=lambda fit: fit.count - fit.rms_px, default=None)
    return best.pose if best is not None and best.count >= LEAST_MATCHES else None
