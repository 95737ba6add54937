"""Rooms with exact truth: pictures of a hand-held camera that walks around a table, and its poses.

    python -m benchmarks.rooms --seeds 2 --folder rooms    # render them, and look at them

The world: metres, y up from the floor. Boards with photographs on them, compared by depth, pixel by
pixel; motion blur from several moments of an exposure, a shutter that rolls from several bands. A
frame takes about 30 ms of one core, with a rolling shutter 60. Edges are not smoothed, and a board
is seen in one of its halvings only: pictures are somewhat rougher than a camera's.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import cv2
import numpy as np

from heimdall.capture.lens import Camera, Motion
from heimdall.capture.pose import Pose
from heimdall.system.paths import ASSETS

VARIANTS = ("hand", "fast", "covered", "people")
MORE = ("away", "rotation", "plants", "white", "dark", "still")
FRAMES, FPS = 600, 30
NEAR_M = 0.05
EXPOSURE_S, MOMENTS = 1 / 80, 2
STEP_PX, AT_M = 10.0, 1.8  # what is so far away moves by less between moments of an exposure
ROLLING_S, BANDS = 0.02, 6
NOISE = 2.5  # grey levels
COVERED = 300, 360  # frames
PUSH_OFF, PUSH_NOISE, MOMENT_S = 0.1, 0.05, 0.002  # of an accelerometer, m/s^2; in between
ASIDE_S, ASIDE_HALF_S = 11.0, 1.5  # when the camera looks away
LEAVES = 16  # of a plant
COARSE = 8  # depths are looked up in a picture so many times smaller
TABLE_M = 0.75
WIDTH_M, DEPTH_M, HEIGHT_M = 4.4, 4.5, 2.6
PLANTS = ((-0.45, TABLE_M, -0.6), (0.35, TABLE_M, -0.35), (1.2, 0.0, -0.9))  # where they stand
PHOTOS = ("multi_face.jpg", "page.png")
CLIPS = {"box.mp4": (5, 200), "cup.mp4": (10, 90), "desk.mp4": (3,), "single_face.mp4": (8,)}


@dataclass(frozen=True, eq=False)
class Board:
    """A flat piece: a corner, its two sides (metres), and a picture BGR in halvings."""

    corner: np.ndarray
    across: np.ndarray
    down: np.ndarray
    pictures: Sequence[np.ndarray]


@dataclass(frozen=True)
class TruePlane:
    """A plane of the room: a point, the normal, and how large it is, metres."""

    name: str
    point: tuple[float, float, float]
    normal: tuple[float, float, float]
    size: tuple[float, float]


PLANES = (
    TruePlane("table", (0, TABLE_M, -0.4), (0, 1, 0), (1.4, 0.9)),
    TruePlane("floor", (0, 0, 0), (0, 1, 0), (WIDTH_M, DEPTH_M)),
    TruePlane("back", (0, 1.3, -2), (0, 0, 1), (WIDTH_M, HEIGHT_M)),
    TruePlane("left", (-WIDTH_M / 2, 1.3, 0.25), (1, 0, 0), (DEPTH_M, HEIGHT_M)),
    TruePlane("right", (WIDTH_M / 2, 1.3, 0.25), (-1, 0, 0), (DEPTH_M, HEIGHT_M)),
)


class Room:
    """The room of a ``seed``, seen as ``variant`` says (VARIANTS, MORE)."""

    def __init__(
        self,
        seed: int,
        variant: str = "hand",
        size: tuple[int, int] = (640, 480),
        frames: int = FRAMES,
    ) -> None:
        self.seed, self.variant, self.size, self.frames = seed, variant, size, frames
        focal = 0.82 * size[0] if size[0] <= 640 else 0.7 * size[0]
        self.camera = Camera(*size, focal, focal, (size[0] - 1) / 2, (size[1] - 1) / 2)
        self._chance = np.random.default_rng([seed, 7])
        self._phases = self._chance.uniform(0, 2 * np.pi, 40)
        self._people = self._chance.uniform(0, 2 * np.pi, 4)

    @property
    def gap(self) -> range:
        """Frames in which nothing is to be seen of what was there before."""
        if self.variant == "covered":
            return range(*COVERED)
        if self.variant == "away":
            ends = ASIDE_S - ASIDE_HALF_S, ASIDE_S + ASIDE_HALF_S
            return range(round(ends[0] * FPS), round(ends[1] * FPS))
        return range(0)

    # --- what there is ----------------------------------------------------------------------

    def _plain(self, base: float, contrast: float, side: int = 1024) -> np.ndarray:
        made = np.full((side, side, 1), base, np.float32)
        for cells in (side // 2, side // 8, side // 32, side // 128):
            rough = self._chance.normal(0, contrast, (cells, cells)).astype(np.float32)
            made += cv2.resize(rough, (side, side), interpolation=cv2.INTER_CUBIC)[..., None]
        tint = self._chance.uniform(0.9, 1.1, 3).astype(np.float32)
        return np.clip(made * tint, 0, 255).astype(np.uint8)

    def _hung(self, wall: np.ndarray, count: int) -> np.ndarray:
        """A wall, or a table, with photographs on it."""
        side = wall.shape[0]
        for place in range(count):
            photo = self._photos[int(self._chance.integers(len(self._photos)))]
            width = int(side * self._chance.uniform(0.14, 0.24))
            height = int(photo.shape[0] * width / photo.shape[1])
            height = min(height, side // 3)
            left = int((place + self._chance.uniform(0.1, 0.5)) * side / count * 0.8)
            top = int(self._chance.uniform(0.25, 0.6) * side)
            top, left = min(top, side - height), min(left, side - width)
            wall[top : top + height, left : left + width] = cv2.resize(
                photo, (width, height), interpolation=cv2.INTER_AREA
            )
        return wall

    @cached_property
    def _photos(self) -> list[np.ndarray]:
        folder = ASSETS / "media"
        found = [cv2.imread(str(folder / name)) for name in PHOTOS]
        for name, frames in CLIPS.items():
            clip = cv2.VideoCapture(str(folder / name))
            for number in frames:
                clip.set(cv2.CAP_PROP_POS_FRAMES, number)
                found.append(clip.read()[1])
        return [each for each in found if each is not None]

    @cached_property
    def boards(self) -> list[Board]:
        """All that stands still."""
        white = self.variant == "white"
        contrast = 0.0 if white else 2.5
        hung = 0 if white else 4
        x, z = WIDTH_M / 2, 2.5
        floor = self._plain(110, contrast)
        if not white:
            for at in range(0, 1024, 64):
                cv2.line(floor, (at, 0), (at, 1023), (80, 60, 45), 2)
            for _ in range(60):
                row, column = self._chance.integers(0, [1024, 16]).tolist()
                cv2.line(floor, (column * 64, row), (column * 64 + 64, row), (80, 60, 45), 2)
        high = [0, -HEIGHT_M, 0]
        sides = [
            ([-x, HEIGHT_M, -2], [WIDTH_M, 0, 0], 185.0),
            ([-x, HEIGHT_M, z], [0, 0, -DEPTH_M], 170.0),
            ([x, HEIGHT_M, -2], [0, 0, DEPTH_M], 175.0),
            ([x, HEIGHT_M, z], [-WIDTH_M, 0, 0], 180.0),
        ]
        boards = [
            board(corner, across, high, self._hung(self._plain(base, contrast), hung))
            for corner, across, base in sides
        ]
        ceiling, top = self._plain(225, contrast / 2), self._plain(140, 2 * contrast)
        edge = self._plain(90, contrast, 256)
        boards += [
            board([-x, 0, -2], [WIDTH_M, 0, 0], [0, 0, DEPTH_M], floor),
            board([-x, HEIGHT_M, z], [WIDTH_M, 0, 0], [0, 0, -DEPTH_M], ceiling),
            board([-0.7, TABLE_M, -0.85], [1.4, 0, 0], [0, 0, 0.9], self._hung(top, hung // 2)),
            board([-0.7, TABLE_M, 0.05], [1.4, 0, 0], [0, -0.06, 0], edge),
        ]
        for _ in range(0 if white else 3):
            foot = self._chance.uniform([-0.55, TABLE_M, -0.75], [0.55, TABLE_M, -0.25])
            boards += self._box(foot, self._chance.uniform(0.04, 0.11, 3))
        for _ in range(0 if white else 3):
            foot = self._chance.uniform([-1.9, 0, -1.8], [1.9, 0, -1.2])
            half = self._chance.uniform([0.15, 0.25, 0.15], [0.35, 0.8, 0.3])
            boards += self._box(foot, half)
        if self.variant == "plants":
            boards += [leaf for spot in PLANTS for leaf in self._plant(np.array(spot))]
        return boards

    @property
    def faces(self) -> list[TruePlane]:
        """All that is flat: PLANES, and every side of every box."""
        return [*PLANES, *(_face(each) for each in self.boards)]

    def _plant(self, foot: np.ndarray) -> list[Board]:
        """Leaves that hang out of a pot, on no plane together."""
        green = cv2.resize(self._plain(110, 18), (128, 128), interpolation=cv2.INTER_AREA)
        green = np.clip(green * np.array([0.5, 1.1, 0.6]), 0, 255).astype(np.uint8)
        leaves = []
        for _ in range(LEAVES):
            turn, rise = self._chance.uniform([0, 0.2], [2 * np.pi, 1.3])
            length, width = self._chance.uniform([0.12, 0.03], [0.3, 0.06])
            out = np.array([np.cos(turn) * np.cos(rise), np.sin(rise), np.sin(turn) * np.cos(rise)])
            side = np.array([-np.sin(turn), self._chance.uniform(-0.4, 0.4), np.cos(turn)])
            across = width * side / np.linalg.norm(side)
            stem = np.add(foot, (0, self._chance.uniform(0.02, 0.2), 0))
            leaves.append(board(stem - across / 2, across, length * out, green))
        return leaves

    def _box(self, foot: np.ndarray, half: np.ndarray) -> list[Board]:
        photo = self._photos[int(self._chance.integers(len(self._photos)))]
        picture = cv2.resize(photo, (256, 256), interpolation=cv2.INTER_AREA)
        return sides_of(foot.tolist(), half.tolist(), picture)

    def _walkers(self, at_s: float) -> list[Board]:
        """People, as large as people: each a photograph that crosses the room."""
        if self.variant != "people":
            return []
        found = []
        for number, phase in enumerate(self._people[:2].tolist()):
            x = 2.6 * np.sin(0.5 * at_s + phase)
            z = -1.4 if number else -0.1 + 0.3 * np.sin(0.3 * at_s)
            picture = cv2.resize(self._photos[number % len(self._photos)], (256, 512))
            found.append(board([x - 0.25, 1.75, z], [0.5, 0, 0], [0, -1.75, 0], picture))
        return found

    # --- where the camera is -----------------------------------------------------------------

    def pose(self, at_s: float) -> Pose:
        """World to camera, that many seconds after the first frame."""
        speed = 2.2 if self.variant == "fast" else 1.0
        turns_s = min(at_s, 4.0) if self.variant == "rotation" else 0.0
        t = 0.0 if self.variant == "still" else at_s * speed
        stands = max(t - 4.0, 0.0) if self.variant == "rotation" else t

        def sway(number: int, rate: float, at: float) -> float:
            return float(np.sin(rate * at + self._phases[number]) - np.sin(self._phases[number]))

        angle = 0.55 * sway(0, 0.55, stands) + 0.1 * sway(1, 1.3, stands)
        away = 1.35 + 0.18 * sway(2, 0.6, stands)
        eye = np.array(
            [
                away * np.sin(angle) + 0.004 * sway(3, 50, stands) * (t > 0),
                1.35 + 0.12 * sway(4, 0.8, stands) + 0.003 * sway(5, 55, stands),
                -0.4 + away * np.cos(angle) + 0.004 * sway(6, 47, stands),
            ]
        )
        look = np.array([0.25 * sway(7, 0.7, t), 0.85 + 0.15 * sway(8, 0.63, t), -0.6])
        look += np.array([0.005, 0.005, 0]) * (sway(9, 52, t) + sway(10, 43, t))
        if self.variant == "rotation":
            look[0] += 0.5 * np.sin(1.5 * turns_s)
        if self.variant == "away":
            gone = np.clip(ASIDE_HALF_S - abs(at_s - ASIDE_S), 0, 1)  # up and aside
            look = look + gone * np.array([4.0, 1.5, 1.0])
        forward = look - eye
        forward /= np.linalg.norm(forward)
        up = np.array([0.06 * sway(11, 0.8, t) + 0.004 * sway(12, 48, t), 1.0, 0.0])
        right = np.cross(forward, up)
        right /= np.linalg.norm(right)
        rotation = np.stack([right, np.cross(forward, right), forward])
        return Pose(rotation, -rotation @ eye)

    @property
    def motions(self) -> list[Motion]:
        """What a phone's sensors say of each frame: where down is, and accelerations that are off
        by 0.1 m/s^2 for good, and by 0.05 at random."""
        chance = np.random.default_rng([self.seed, 11])
        off, found = PUSH_OFF * chance.normal(size=3), []
        for number, pose in enumerate(self.poses):
            ends = [self.pose(number / FPS + each).position for each in (-MOMENT_S, MOMENT_S)]
            pushed = (ends[0] + ends[1] - 2 * pose.position) / MOMENT_S**2
            said = pose.rotation @ pushed + off + PUSH_NOISE * chance.normal(size=3)
            found.append(Motion(pose.rotation @ (0, -1, 0), said))
        return found

    @property
    def poses(self) -> list[Pose]:
        """Of all frames, in the middle of their exposure."""
        return [self.pose(number / FPS) for number in range(self.frames)]

    # --- pictures ----------------------------------------------------------------------------

    def __iter__(self) -> Iterator[tuple[np.ndarray, float]]:
        """Each frame, BGR uint8, and when it is taken, seconds."""
        chance = np.random.default_rng([self.seed, 11])
        for number in range(self.frames):
            at_s = number / FPS
            light = 1.0
            if self.variant == "people":
                light += 0.12 * np.sin(0.8 * at_s)
            if self.variant == "dark":
                light = 0.04
            picture = self._exposed(at_s) * np.float32(light)
            if self.variant == "covered" and COVERED[0] <= number < COVERED[1]:
                picture[:] = 25
            grain = NOISE * chance.standard_normal(picture.shape[:2], np.float32)
            yield np.clip(picture + grain[..., None], 0, 255).astype(np.uint8), at_s

    def _exposed(self, at_s: float) -> np.ndarray:
        rolls = self.variant == "people"
        rows = np.linspace(0, self.size[1], (BANDS if rolls else 1) + 1).astype(int)
        bands = []
        for top, bottom in zip(rows[:-1].tolist(), rows[1:].tolist(), strict=True):
            late_s = ((top + bottom) / 2 / self.size[1] - 0.5) * ROLLING_S if rolls else 0.0
            count = max(MOMENTS, 1 + int(np.ceil(self._blur_px(at_s + late_s) / STEP_PX)))
            share = (np.arange(count) / (count - 1) - 0.5) * EXPOSURE_S
            seen = [self.look(at_s + late_s + each, top, bottom) for each in share.tolist()]
            bands.append(np.sum(seen, axis=0, dtype=np.float32) / len(seen))
        return np.concatenate(bands)

    def _blur_px(self, at_s: float) -> float:
        """How far what the middle of the picture shows moves during an exposure."""
        begin, end = (self.pose(at_s + each) for each in (-EXPOSURE_S / 2, EXPOSURE_S / 2))
        x, y, z = end.to_camera(begin.to_world(np.array([0, 0, AT_M]))).tolist()
        return self.camera.fx * float(np.hypot(x, y)) / z

    def look(self, at_s: float, top: int = 0, bottom: int | None = None) -> np.ndarray:
        """Rows of the picture that is seen at one moment."""
        height = (bottom or self.size[1]) - top
        pose, width = self.pose(at_s), self.size[0]
        matrix = self.camera.matrix
        matrix[1, 2] -= top
        picture = np.zeros((height, width, 3), np.uint8)
        nearest = np.zeros((height, width), np.float32)  # 1 / depth
        for board in [*self.boards, *self._walkers(at_s)]:
            _paint(board, pose, matrix, picture, nearest)
        return picture

    def depth(self, at_s: float) -> float:
        """How far before the camera what stands still is, metres: the median over the picture."""
        small = self.camera.scaled(self.size[0] // COARSE, self.size[1] // COARSE)
        picture = np.zeros((small.height, small.width, 3), np.uint8)
        nearest = np.zeros((small.height, small.width), np.float32)
        for board in self.boards:
            _paint(board, self.pose(at_s), small.matrix, picture, nearest)
        return float(1 / np.median(nearest))

    @property
    def fingerprint(self) -> str:
        """Another one, if rooms are rendered differently than they were."""
        made = hashlib.sha256(repr((NOISE, COVERED, self.frames)).encode())
        for at_s in (0.0, 7.0):
            made.update(self._exposed(at_s).tobytes())
        return made.hexdigest()


def board(
    corner: Sequence[float], across: Sequence[float], down: Sequence[float], picture: np.ndarray
) -> Board:
    """From a corner and two sides, metres; ``picture`` BGR uint8."""
    pictures = [picture]
    while min(pictures[-1].shape[:2]) > 16:
        pictures.append(cv2.pyrDown(pictures[-1]))
    o, u, v = (np.array(each, float) for each in (corner, across, down))
    return Board(o, u, v, pictures)


def sides_of(foot: Sequence[float], half: Sequence[float], picture: np.ndarray) -> list[Board]:
    """Those of a box that stands at ``foot`` and is twice ``half`` large, metres, but for its back
    and its bottom, each with that picture."""
    (x, y, z), (a, b, c) = foot, half
    b *= 2
    return [
        board([x - a, y + b, z + c], [2 * a, 0, 0], [0, -b, 0], picture),
        board([x - a, y + b, z - c], [2 * a, 0, 0], [0, 0, 2 * c], picture),
        board([x - a, y + b, z - c], [0, 0, 2 * c], [0, -b, 0], picture),
        board([x + a, y + b, z + c], [0, 0, -2 * c], [0, -b, 0], picture),
    ]


def _paint(
    board: Board, pose: Pose, matrix: np.ndarray, picture: np.ndarray, nearest: np.ndarray
) -> None:
    corner, across, down = board.corner, board.across, board.down
    outline = pose.to_camera(
        np.stack([corner, corner + across, corner + across + down, corner + down])
    )
    outline = _before(outline)
    if len(outline) < 3:
        return
    seen = outline @ matrix.T
    pixels = seen[:, :2] / seen[:, 2:]
    low = np.maximum(np.floor(pixels.min(axis=0)), 0).astype(int)
    high = np.minimum(np.ceil(pixels.max(axis=0)) + 1, picture.shape[1::-1]).astype(int)
    size = high - low
    if (size <= 0).any():
        return
    inside = np.zeros(size[::-1], np.uint8)
    cv2.fillConvexPoly(inside, ((pixels - low) * 16).round().astype(np.int32), 255, shift=4)
    area = max(cv2.countNonZero(inside), 1)
    whole = board.pictures[0].shape
    level = int(
        np.clip(np.log2(np.sqrt(whole[0] * whole[1] / area) + 1e-6), 0, len(board.pictures) - 1)
    )
    pattern = board.pictures[level]
    rows, columns = pattern.shape[:2]
    plane = np.column_stack([across / columns, down / rows, corner])
    turned = pose.rotation @ plane
    turned[:, 2] += pose.translation
    shift = np.array([[1, 0, -low[0]], [0, 1, -low[1]], [0, 0, 1.0]])
    into = shift @ matrix @ turned
    back = np.linalg.inv(into)
    x, y = np.arange(size[0], dtype=np.float32), np.arange(size[1], dtype=np.float32)
    close = (back[2, 0] * x + back[2, 2]).astype(np.float32) + (back[2, 1] * y)[:, None].astype(
        np.float32
    )
    there = nearest[low[1] : high[1], low[0] : high[0]]
    wins = cv2.bitwise_and(inside, cv2.compare(close, there, cv2.CMP_GT))
    if not cv2.countNonZero(wins):
        return
    painted = cv2.warpPerspective(
        pattern, into, tuple(size.tolist()), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    )
    cv2.copyTo(painted, wins, picture[low[1] : high[1], low[0] : high[0]])
    cv2.copyTo(close, wins, there)


def _before(outline: np.ndarray) -> np.ndarray:
    """The part of a polygon (n, 3) that lies before the camera."""
    kept = []
    for one, other in zip(outline, np.roll(outline, -1, axis=0), strict=True):
        if one[2] >= NEAR_M:
            kept.append(one)
        if (one[2] >= NEAR_M) != (other[2] >= NEAR_M):
            kept.append(one + (other - one) * (NEAR_M - one[2]) / (other[2] - one[2]))
    return np.array(kept).reshape(-1, 3)


def _face(board: Board) -> TruePlane:
    middle = board.corner + (board.across + board.down) / 2
    normal = np.cross(board.across, board.down)
    size = float(np.linalg.norm(board.across)), float(np.linalg.norm(board.down))
    x, y, z = middle.tolist()
    a, b, c = (normal / np.linalg.norm(normal)).tolist()
    return TruePlane("side", (x, y, z), (a, b, c), size)


def rendered(folder: Path, room: Room) -> Path:
    """The room's pictures as files, ``folder/VARIANT-SEED-WxH-FRAMES/NNNNN.jpg``, and ``truth.npz``
    with ``poses`` (n, 3, 4), the ``camera`` (width, height, fx, fy, cx, cy) and ``depths`` (n,).
    Made once, and again if rooms are rendered differently since."""
    place = folder / f"{room.variant}-{room.seed}-{room.size[0]}x{room.size[1]}-{room.frames}"
    done = place / "done"
    if not done.exists() or done.read_text() != room.fingerprint:
        place.mkdir(parents=True, exist_ok=True)
        done.unlink(missing_ok=True)
        for number, (picture, _) in enumerate(room):
            cv2.imwrite(str(place / f"{number:05d}.jpg"), picture, [cv2.IMWRITE_JPEG_QUALITY, 93])
        camera = room.camera
        np.savez(
            place / "truth.npz",
            poses=[np.column_stack([each.rotation, each.translation]) for each in room.poses],
            camera=[*camera.size, camera.fx, camera.fy, camera.cx, camera.cy],
            depths=[room.depth(number / FPS) for number in range(room.frames)],
        )
        done.write_text(room.fingerprint)
    return place


def main() -> None:
    """Render rooms."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--frames", type=int, default=FRAMES)
    options = parser.parse_args()
    cv2.setNumThreads(1)
    for seed in range(options.first, options.first + options.seeds):
        for variant in options.variants.split(","):
            print(rendered(options.folder, Room(seed, variant, frames=options.frames)))


if __name__ == "__main__":
    main()
