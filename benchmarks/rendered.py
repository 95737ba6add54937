"""Clips with known truth: a camera moves by hand over a table with a marker or a picture on it.

Everything follows from a seed: textures, the way of the camera, light, noise, blur and what is in
front. Pictures are grey, for that is all that tracking looks at. World axes as everywhere: metres,
the origin in the middle of the target, x right, y up, z out of it. A frame is the mean of several
moments of its exposure.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import cv2
import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose

SIZE = (1280, 720)
FPS = 30.0
TEXELS = 800.0  # of a texture, a metre
TABLE_M, WALL_M = 2.4, 1.6
SKIN = 150.0  # grey level of what comes in front
MOST_MOMENTS = 15
MOMENTS = 3  # of an exposure, at least; more where it moves far
DICTIONARY = "DICT_4X4_50"


@dataclass(frozen=True)
class Course:
    """What a clip is like. Times in seconds, distances in metres, angles in degrees."""

    seconds: float = 6.0
    target: str = "marker"  # or "picture"
    width_m: float = 0.12  # of the target
    near: float = 0.45
    far: float = 0.95
    tilt: float = 50.0  # off the target's normal, at most
    speed: float = 1.0  # of the hand
    exposure: float = 0.4  # of a frame's interval
    noise: float = 3.0  # grey levels
    light: float = 0.25  # share by which it changes over the picture, and in time
    occluder: float = 0.0  # share of the clip in which something is in front
    away: float = 0.0  # share of the clip in which the target is out of view
    still: bool = False
    bent: bool = False  # the lens has distortion
    bare: bool = False  # nothing around the target has texture


@dataclass(frozen=True, eq=False)
class Shot:
    """A frame, BGR uint8, what took it (with its true pose), the share of the target that is to be
    seen, and how far its middle moved in the exposure."""

    image: np.ndarray
    camera: Camera
    visible: float
    blur_px: float


@functools.lru_cache(maxsize=4)
def scenery(seed: int, size: int) -> np.ndarray:
    """Soft blobs, papers and pens, BGR uint8: corners everywhere, none twice. Not to be written
    to."""
    draw = np.random.default_rng(seed)
    picture = np.full((size, size, 3), draw.uniform(90, 160, 3), np.float32)
    for cells, height in ((3, 10.0), (9, 14.0), (40, 16.0)):
        noise = draw.standard_normal((size // cells, size // cells, 3)).astype(np.float32)
        picture += cv2.resize(noise * height, (size, size), interpolation=cv2.INTER_CUBIC)
    for _ in range(size * size // 5000):
        at = draw.uniform(0, size, 2)
        sides, turn = draw.uniform(6, 60, 2), draw.uniform(0, 180)
        box = cv2.boxPoints(((at[0], at[1]), (sides[0], sides[1]), turn)).astype(np.int32)
        cv2.fillConvexPoly(picture, box, draw.uniform(20, 235, 3).tolist(), cv2.LINE_AA)
    return np.clip(picture, 0, 255).astype(np.uint8)


def painted(seed: int, pixels: int = 480) -> np.ndarray:
    """A picture to be a target: printed shapes and words, BGR uint8 (3:4, ``pixels`` wide)."""
    draw = np.random.default_rng(seed + 9000)
    height = pixels * 3 // 4
    page = scenery(seed + 9000, pixels)[:height].copy()
    for line in range(5):
        word = "".join(chr(int(each)) for each in draw.integers(65, 91, 9))
        at = (int(draw.integers(0, pixels // 3)), (line + 1) * height // 6)
        ink = draw.uniform(0, 255, 3).tolist()
        cv2.putText(page, word, at, cv2.FONT_HERSHEY_DUPLEX, draw.uniform(0.7, 1.5), ink, 2, 16)
    return page


def printed(number: int, dictionary: str = DICTIONARY, pixels: int = 300) -> np.ndarray:
    """A marker with its white margin of one cell, BGR uint8."""
    known = cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, dictionary))
    cells = known.markerSize + 2
    black = cv2.aruco.generateImageMarker(known, number, cells * (pixels // cells))
    margin = pixels // cells
    white = np.pad(black, margin, constant_values=255)
    return cv2.cvtColor(white, cv2.COLOR_GRAY2BGR)


class Way:
    """Where the camera is at any time: a hand that goes around the target, and trembles."""

    def __init__(self, draw: np.random.Generator, course: Course) -> None:
        self._course = course
        self._phases = draw.uniform(0, 2 * np.pi, (6, 4))
        self._rates = draw.uniform(0.05, 0.35, (6, 3)) * course.speed
        self._side = draw.uniform(0, 2 * np.pi)

    def _wave(self, axis: int, at_s: float) -> float:
        slow = np.sin(2 * np.pi * self._rates[axis] * at_s + self._phases[axis, :3]).mean()
        return float(slow + 0.012 * np.sin(2 * np.pi * 7 * at_s + self._phases[axis, 3]))

    def at(self, at_s: float) -> Pose:
        """The camera's pose ``at_s`` seconds after the first frame."""
        course = self._course
        when = 0.0 if course.still else at_s
        lean = np.radians(course.tilt * (0.62 + 0.38 * self._wave(0, when)))
        turn = self._side + 0.9 * self._wave(1, when)
        far = course.near + (course.far - course.near) * (0.5 + 0.5 * self._wave(2, when))
        spot = np.array([self._wave(3, when), self._wave(4, when), 0.0]) * 0.18 * far
        share = at_s / course.seconds
        if 0.5 <= share < 0.5 + course.away:  # over to another part of the table, and back
            part = (share - 0.5) / course.away
            gone = min(1.0, 3 * part, 3 * (1 - part))
            spot[0] += 1.1 * far * gone * gone * (3 - 2 * gone)
        out = np.array([np.sin(lean) * np.cos(turn), np.sin(lean) * np.sin(turn), np.cos(lean)])
        return _looking(spot + far * out, spot, 0.2 * self._wave(5, when))


def _looking(where: np.ndarray, at: np.ndarray, roll: float) -> Pose:
    """The pose of a camera at ``where`` that looks ``at`` a point of the table, y up."""
    forward = (at - where) / np.linalg.norm(at - where)
    right = np.cross(forward, np.array([0.0, 1.0, 0.25]))
    right /= np.linalg.norm(right)
    axes = np.stack([right, np.cross(forward, right), forward])
    turned = Pose.of(np.array([0, 0, roll]), np.zeros(3)).rotation @ axes
    return Pose(turned, -turned @ where)


class Rendered:
    """The clip of ``seed``: ``shots()`` gives its frames in order.

    ``target`` is what is on the table, BGR uint8, its width ``course.width_m``. For a marker that
    is the black square; the white margin lies around it.
    """

    def __init__(self, seed: int, course: Course = Course(), camera: Camera | None = None) -> None:
        self.seed, self.course = seed, course
        draw = self._draw = np.random.default_rng(seed)
        focal = float(draw.uniform(780, 1000))
        bends = tuple(draw.uniform(-1, 1, 5) * (0.08, 0.06, 0.001, 0.001, 0.0))
        centre = (SIZE[0] / 2 + draw.uniform(-8, 8), SIZE[1] / 2 + draw.uniform(-8, 8))
        own = Camera(*SIZE, focal, focal * 1.002, *centre, bends if course.bent else (0.0,) * 5)
        self.camera = camera or own
        self.marker = int(draw.integers(0, 50))
        self.target = printed(self.marker) if course.target == "marker" else painted(seed)
        self._surfaces = self._laid_out()

    @property
    def size_m(self) -> np.ndarray:
        """Width and height of what is on the table that counts as the target."""
        if self.course.target == "marker":
            return np.array([self.course.width_m] * 2)
        rows, columns = self.target.shape[:2]
        return np.array([1.0, rows / columns]) * self.course.width_m

    def corners(self) -> np.ndarray:
        """Of the target, metres (4, 3), clockwise from the top left."""
        x, y = self.size_m / 2
        return np.array([[-x, y, 0], [x, y, 0], [x, -y, 0], [-x, -y, 0]])

    def _laid_out(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Textures, each with the matrix (3, 3) from its texels to a plane's point of the world
        (as columns of a camera: X = M @ (u, v, 1)); farthest first."""
        texels = int(TABLE_M * TEXELS)
        # a few textures for all seeds: they take longer than a clip
        table, wall = scenery(self.seed % 3, texels), scenery(3, texels // 2)
        if self.course.bare:
            table, wall = np.full_like(table, 120), np.full_like(wall, 150)
        metre = TABLE_M / texels
        flat = np.array([[metre, 0, -TABLE_M / 2], [0, -metre, TABLE_M / 2], [0, 0, 0]])
        metre = WALL_M / len(wall)
        up = np.array([[metre, 0, -WALL_M / 2], [0, 0, TABLE_M / 3], [0, -metre, WALL_M * 0.6]])
        rows, columns = self.target.shape[:2]
        black = columns
        if self.course.target == "marker":
            cells = cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, DICTIONARY)).markerSize + 4
            black = columns * (cells - 2) // cells
        metre = self.course.width_m / black
        # texel centres: the first one's is half a texel inside
        half_x, half_y = columns * metre / 2, rows * metre / 2
        mine = np.array(
            [[metre, 0, metre / 2 - half_x], [0, -metre, half_y - metre / 2], [0, 0, 0.0]]
        )
        laid = [(wall, up), (table, flat), (self.target, mine)]
        return [(_grey(texture), where) for texture, where in laid]

    def shots(self) -> Iterator[Shot]:
        """Frame after frame."""
        course, interval = self.course, 1 / FPS
        draw = np.random.default_rng((self.seed, 1))
        way = Way(np.random.default_rng((self.seed, 2)), course)
        hand = draw.uniform(0, 2 * np.pi, 3)
        for number in range(round(course.seconds * FPS)):
            begin = number * interval
            shutter = np.array([0.0, 0.5, 1.0]) * course.exposure * interval
            three = [self.camera.at(way.at(begin + each)) for each in shutter]
            blur = float(np.linalg.norm(self._seen(three[0]) - self._seen(three[2]), axis=1).mean())
            count = min(max(MOMENTS, int(blur / 2.5) | 1), MOST_MOMENTS) if blur > 0.3 else 1
            moments = (
                [
                    self.camera.at(way.at(begin + each))
                    for each in np.linspace(0, shutter[-1], count)
                ]
                if count > 1
                else [three[1]]
            )
            picture = np.zeros((SIZE[1], SIZE[0]), np.float32)
            for each in moments:
                cv2.accumulate(self._drawn(each), picture)
            picture *= self._lit(begin) / len(moments)
            cover = self._covering(three[1], begin, hand)
            if cover is not None:
                picture += cover * (SKIN - picture)
            picture += self._grain(draw)
            image = cv2.cvtColor(cv2.convertScaleAbs(np.maximum(picture, 0)), cv2.COLOR_GRAY2BGR)
            yield Shot(image, three[1], self._visible(three[1], cover), blur)

    def _seen(self, camera: Camera) -> np.ndarray:
        assert camera.pose
        return camera.pixels(camera.pose.to_camera(self.corners()))

    def _drawn(self, camera: Camera) -> np.ndarray:
        """One moment, in grey."""
        assert camera.pose
        straight = replace(camera, distortion=(0.0,) * 5)
        picture = np.full((camera.height, camera.width), 105, np.uint8)
        for texture, laid in self._surfaces:
            there = camera.pose.rotation @ laid
            there[:, 2] += camera.pose.translation
            homography = straight.matrix @ there
            texture, homography = _coarse(texture, homography, SIZE)
            _over(picture, texture, homography)
        if any(camera.distortion):
            edge = cv2.BORDER_REPLICATE
            x, y = self._bent()
            return np.asarray(cv2.remap(picture, x, y, cv2.INTER_LINEAR, borderMode=edge))
        return picture

    def _bent(self) -> tuple[np.ndarray, np.ndarray]:
        if not hasattr(self, "_maps"):
            x, y = np.meshgrid(np.arange(SIZE[0]), np.arange(SIZE[1]))
            places = np.stack([x.ravel(), y.ravel()], axis=1).astype(np.float64)
            rays = self.camera.rays(places)
            straight = replace(self.camera, distortion=(0.0,) * 5).pixels(rays)
            where = straight.reshape(SIZE[1], SIZE[0], 2).astype(np.float32)
            self._maps = np.ascontiguousarray(where[..., 0]), np.ascontiguousarray(where[..., 1])
        return self._maps

    def _lit(self, at_s: float) -> np.ndarray:
        """A gradient that wanders, an exposure that changes, and bands of a lamp's flicker."""
        share = self.course.light
        x = np.linspace(-1, 1, SIZE[0], dtype=np.float32)
        y = np.linspace(-1, 1, SIZE[1], dtype=np.float32)[:, None]
        turn = 0.7 * at_s
        slope = (x * np.cos(turn) + y * np.sin(turn)) * share / 1.5
        whole = 1 - share / 2 + share / 2 * np.sin(1.9 * at_s)
        bands = 0.1 * share * np.sin(6 * y + 40 * at_s)
        return np.asarray(whole + slope + bands, np.float32)

    def _grain(self, draw: np.random.Generator) -> np.ndarray:
        if not hasattr(self, "_noise"):
            rng = np.random.default_rng((self.seed, 3))
            noise = rng.standard_normal((SIZE[1] + 64, SIZE[0] + 64)).astype(np.float32)
            self._noise = noise * self.course.noise
        x, y = draw.integers(0, 64, 2)
        return self._noise[y : y + SIZE[1], x : x + SIZE[0]]

    def _covering(self, camera: Camera, at_s: float, hand: np.ndarray) -> np.ndarray | None:
        """Something like a hand that comes over the target and goes: (h, w), 0 to 1."""
        part = at_s / self.course.seconds
        if not self.course.occluder or not 0.15 <= part < 0.15 + self.course.occluder:
            return None
        corners = self._seen(camera)
        reach = float(np.linalg.norm(np.ptp(corners, axis=0)))
        turn = hand[0] + 0.5 * np.sin(3 * at_s + hand[1])
        off = reach * (0.75 + 0.28 * np.sin(2.3 * at_s + hand[2]))
        at = corners.mean(axis=0) + off * np.array([np.cos(turn), np.sin(turn)])
        cover = np.zeros((SIZE[1], SIZE[0]), np.float32)
        axes = (int(reach * 0.9), int(reach * 0.55))
        at = np.clip(at, -4000, 4000)
        where = (int(at[0]), int(at[1]))
        cv2.ellipse(cover, where, axes, float(np.degrees(turn)), 0, 360, 1.0, -1, cv2.LINE_AA)
        return cover

    def _visible(self, camera: Camera, cover: np.ndarray | None) -> float:
        x, y = np.meshgrid(np.linspace(-0.5, 0.5, 21), np.linspace(-0.5, 0.5, 21))
        points = np.stack([x.ravel(), y.ravel()], axis=1) * self.size_m
        assert camera.pose
        there = camera.pose.to_camera(np.column_stack([points, np.zeros(len(points))]))
        if (there[:, 2] <= 0.01).any():
            return 0.0
        pixels = camera.pixels(there)
        inside = ((pixels >= 0) & (pixels < np.array(SIZE) - 1)).all(axis=1)
        if cover is not None:
            places = np.clip(pixels.round().astype(int), 0, np.array(SIZE) - 1)
            inside &= cover[places[:, 1], places[:, 0]] < 0.5
        return float(inside.mean())


def _grey(texture: np.ndarray) -> np.ndarray:
    return cv2.cvtColor(texture, cv2.COLOR_BGR2GRAY)


def _coarse(
    texture: np.ndarray, homography: np.ndarray, size: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """The texture in a size in which about one texel is a pixel, so that none flicker."""
    rows, columns = texture.shape[:2]
    middle = np.array([columns / 2, rows / 2, 1.0])
    steps = np.array([[1, 0, 0], [0, 1, 0]])
    at = homography @ middle
    if at[2] <= 0.05:
        return texture, homography
    near = [homography @ (middle + each) for each in steps]
    step = min(np.linalg.norm(each[:2] / each[2] - at[:2] / at[2]) for each in near)
    while step < 0.6 and min(rows, columns) > 32:
        rows, columns, step = rows // 2, columns // 2, step * 2
    if (rows, columns) == texture.shape[:2]:
        return texture, homography
    across, down = texture.shape[1] / columns, texture.shape[0] / rows
    grown = np.array([[across, 0, (across - 1) / 2], [0, down, (down - 1) / 2], [0, 0, 1]])
    return cv2.resize(texture, (columns, rows), interpolation=cv2.INTER_AREA), homography @ grown


def _over(picture: np.ndarray, texture: np.ndarray, homography: np.ndarray) -> None:
    """Draw a plane over ``picture`` where it is before the camera."""
    size = picture.shape[1::-1]
    rows, columns = texture.shape[:2]
    edges = np.array([[0, 0, 1], [columns, 0, 1], [columns, rows, 1], [0, rows, 1]]).T
    depth = (homography @ edges)[2]
    if (depth <= 0.02).all():
        return
    # A pixel shows the plane where its ray meets it in front: on one side of a line.
    line = np.linalg.inv(homography)[2]
    ends = np.array([[0, 0, 1], [size[0], 0, 1], [0, size[1], 1], [*size, 1]]) @ line
    if (ends <= 0).all():
        return
    before = picture.copy() if (ends <= 0).any() else None
    flags = cv2.INTER_LINEAR
    cv2.warpPerspective(
        texture, homography, size, picture, flags, borderMode=cv2.BORDER_TRANSPARENT
    )
    if before is not None:
        x, y = np.meshgrid(np.arange(size[0]), np.arange(size[1]))
        np.copyto(picture, before, where=line[0] * x + line[1] * y + line[2] <= 0)
