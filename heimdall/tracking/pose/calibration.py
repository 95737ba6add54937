"""What a camera is, from a board that it sees: focal lengths, centre and distortion.

The board is a ChArUco one (Garrido-Jurado et al., 2014): a chessboard whose white squares hold
markers, so that each of its corners has a number and a part of it is enough. How large it is
printed does not matter here: only places of the board, not metres, come in. The method is that of
Zhang (2000), as OpenCV has it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np

from heimdall.capture.lens import Camera
from heimdall.errors import ConfigError
from heimdall.tracking.pose.solve import planar
from heimdall.tracking.pose.targets import dictionary

LEAST_CORNERS = 8  # of a view
LEAST_VIEWS, WANTED_VIEWS, MOST_VIEWS = 6, 25, 50
DIFFERENT = 0.04  # of the picture's diagonal that the board has moved by, between views
FITTING = 0.7  # of a board's markers that must lie as on it
LEAST_TURN, WANTED_TURN = math.radians(12), math.radians(35)  # between views of the board
LEAST_COVERED, WANTED_COVERED = 0.3, 0.7  # of the picture's cells, by corners of all views
CELLS = (5, 4)
OUTLIER = 3.0  # times the median error of a view
WORST_PX = 2.0  # root mean square, in a picture 1280 wide
FOCAL_SD = 0.02  # a standard deviation beyond it is no knowledge
SIGNIFICANT = 3.0  # standard deviations that k3 must be away from 0
K3 = 8  # where its deviation is among OpenCV's


@dataclass(frozen=True)
class ChessBoard:
    """A ChArUco board of ``columns`` x ``rows`` squares, the first one black, its markers
    numbered from 0."""

    columns: int = 7
    rows: int = 5
    dictionary: str = "DICT_4X4_50"

    def __post_init__(self) -> None:
        if not (3 <= self.columns <= 40 and 3 <= self.rows <= 40):
            raise ConfigError(f"a board of {self.columns}x{self.rows} squares: give 3x3 to 40x40")
        known = len(dictionary(self.dictionary).bytesList)
        if self.markers > known:
            raise ConfigError(
                f"a board of {self.columns}x{self.rows} squares has {self.markers} markers, and "
                f"{self.dictionary} only {known}: take another --dictionary"
            )

    @property
    def markers(self) -> int:
        """How many markers the board has."""
        return self.columns * self.rows // 2

    @property
    def name(self) -> str:
        """The board's name in messages."""
        return f"{self.columns}x{self.rows} squares, {self.dictionary}"

    def opened(self) -> cv2.aruco.CharucoBoard:
        """The board as OpenCV has it; a square is 1 long."""
        known = dictionary(self.dictionary)
        return cv2.aruco.CharucoBoard((self.columns, self.rows), 1.0, 0.75, known)


@dataclass(frozen=True, eq=False)
class BoardView:
    """Corners (n, 3) of a board, in squares, seen at ``pixels`` (n, 2); where its outline is
    (4, 2) and its normal about points (3,), and by how many pixels it moved since the frame
    before (infinite where it was not in that)."""

    points: np.ndarray
    pixels: np.ndarray
    outline: np.ndarray
    normal: np.ndarray
    moved_px: float


@dataclass(frozen=True, eq=False)
class Calibrated:
    """A ``camera``, how far corners are from where it has them (root mean square, pixels), the
    standard deviation of its focal length as a share, and the ``errors`` in pixels of the views
    (n,) that it is from; how many did ``not_fit``, and the share of the picture that all cover."""

    camera: Camera
    reprojection_px: float
    focal_sd: float
    errors: np.ndarray
    not_fit: int = 0
    covered: float = 0.0

    @property
    def views(self) -> int:
        """How many views the camera is from."""
        return len(self.errors)

    @classmethod
    def of(cls, views: Sequence[BoardView], size: tuple[int, int]) -> Calibrated:
        """What the views say. Raises ConfigError where they say nothing."""
        places = [each.points.astype(np.float32) for each in views]
        seen = [each.pixels.astype(np.float32)[:, None] for each in views]
        for flags in (0, cv2.CALIB_FIX_K3):
            try:
                rms, matrix, bent, _, _, deviations, _, errors = cv2.calibrateCameraExtended(
                    places, seen, size, Camera.guess(*size).matrix, np.zeros(5),
                    flags=flags | cv2.CALIB_USE_INTRINSIC_GUESS,
                )  # fmt: skip
            except cv2.error as error:
                raise ConfigError(
                    f"these views say no camera ({error.err}): tilt the board"
                ) from error
            spread, distortion = np.ravel(deviations), np.ravel(bent)[:5].astype(np.float64)
            if abs(distortion[4]) > SIGNIFICANT * spread[K3]:
                break  # else it is noise, which bends the corners, where no board was
        fx, fy, cx, cy = (float(matrix[at]) for at in ((0, 0), (1, 1), (0, 2), (1, 2)))
        camera = Camera(*size, fx, fy, cx, cy, tuple(distortion.tolist()))
        focal_sd = float(max(spread[0] / fx, spread[1] / fy))
        return cls(camera, float(rms), focal_sd, np.ravel(errors))

    def check(self) -> None:
        """Raises ConfigError for what cannot be a camera."""
        camera = self.camera
        width, height = camera.size
        worst = WORST_PX * max(1.0, width / 1280)
        if self.reprojection_px > worst:
            raise ConfigError(
                f"corners are off by {self.reprojection_px:.1f} px, {worst:.1f} is too much: is "
                "the board flat, sharp in the picture, and the zoom left alone?"
            )
        sane = all(0.1 * width < each < 20 * width for each in (camera.fx, camera.fy))
        sane = sane and 0 < camera.cx < width and 0 < camera.cy < height
        if not sane or not self.focal_sd < FOCAL_SD:
            raise ConfigError(
                f"these views leave the focal length open ({camera.fx:.0f} px, give or take "
                f"{self.focal_sd:.0%}): tilt the board to all sides, nearer and farther"
            )


class Calibration:
    """Give it frame after frame, ``advice`` says what is lacking; then ``solve``. One size of
    picture only."""

    def __init__(self, board: ChessBoard = ChessBoard()) -> None:
        self.board = board
        self.frames = self.seen = 0
        self.views: list[BoardView] = []
        self._foreign = 0
        self._stray: int | None = None  # the largest number that the board does not have
        self._size: tuple[int, int] | None = None
        self._before: BoardView | None = None
        self._opened = board.opened()
        self._markers = cv2.aruco.ArucoDetector(dictionary(board.dictionary))
        self._corners = cv2.aruco.CharucoDetector(self._opened)

    def look(self, image: np.ndarray) -> bool:
        """Add a frame, BGR or grey uint8. True if it shows the board as no other one did."""
        grey = image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
        size = (grey.shape[1], grey.shape[0])
        if self._size is not None and size != self._size:
            raise ConfigError(
                f"frames of {self._size[0]}x{self._size[1]} and of {size[0]}x{size[1]}: "
                "a camera is calibrated for one size"
            )
        self._size = size
        self.frames += 1
        view, before = self._found(grey), self._before
        self._before = view
        if view is None:
            return False
        self.seen += 1
        apart = DIFFERENT * math.hypot(*size)
        for number, other in enumerate(self.views):
            if _moved(view, other) < apart:
                # the calmest of those that look the same: a moving board is blurred, and bent by
                # a shutter that rolls
                if before is not None and view.moved_px < other.moved_px:
                    self.views[number] = view
                return False
        self.views.append(view)
        return True

    def _found(self, grey: np.ndarray) -> BoardView | None:
        corners, numbers, _ = self._markers.detectMarkers(grey)
        if numbers is None:
            return None
        # OpenCV 4 and 5.0 print AprilTags turned by 180 degrees: boards of theirs count, too
        turns = (0, 2) if "APRILTAG" in self.board.dictionary else (0,)
        ways = [[np.roll(each, turn, axis=1) for each in corners] for turn in turns]
        lying = next((way for way in ways if self._is_board(way, numbers.ravel())), None)
        if lying is None:
            self._foreign += len(numbers) >= 3
            return None
        there, ids, _, _ = self._corners.detectBoard(grey, markerCorners=lying, markerIds=numbers)
        if ids is None or len(ids) < LEAST_CORNERS:
            return None
        pixels = np.asarray(there, np.float64).reshape(-1, 2)
        points = np.asarray(self._opened.getChessboardCorners(), np.float64)[np.ravel(ids)]
        if min(np.ptp(points[:, :2], axis=0)) < 1:  # on one line
            return None
        homography, _ = cv2.findHomography(points[:, :2], pixels)
        poses = planar(Camera.guess(*grey.shape[::-1]), points, pixels)
        if homography is None or not poses:
            return None
        far = np.array([self.board.columns, self.board.rows], np.float64)
        edges = (np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) * far)[:, None]
        outline = cv2.perspectiveTransform(edges, homography)[:, 0]
        view = BoardView(points, pixels, outline, poses[0].rotation[:, 2], math.inf)
        before = self._before
        return replace(view, moved_px=_moved(view, before)) if before is not None else view

    def _is_board(self, corners: Sequence[np.ndarray], numbers: np.ndarray) -> bool:
        """True if markers lie as on the board; those of another one must not become its corners."""
        mine = numbers < self.board.markers
        if not mine.all():
            self._stray = max(int(numbers.max()), self._stray or 0)
        places = self._opened.getObjPoints()
        if mine.sum() >= 3:
            points = np.concatenate([np.asarray(places[number]) for number in numbers[mine]])
            pixels = np.concatenate(
                [corners[at].reshape(4, 2) for at in np.flatnonzero(mine).tolist()]
            )
            reach = 0.02 * float(np.ptp(pixels, axis=0).max()) + 2.0
            _, agree = cv2.findHomography(
                points[:, :2].astype(np.float64), pixels, cv2.RANSAC, reach
            )
            if agree is not None and agree.sum() >= FITTING * 4 * len(numbers):
                return True
        return False

    @property
    def covered(self) -> float:
        """The share of the picture's cells in which there was a corner."""
        if not self.views or self._size is None:
            return 0.0
        pixels = np.concatenate([each.pixels for each in self.views])
        cells = np.clip((pixels / self._size * CELLS).astype(int), 0, np.array(CELLS) - 1)
        return len(np.unique(cells, axis=0)) / (CELLS[0] * CELLS[1])

    @property
    def turned(self) -> float:
        """The largest angle between two views of the board, radians."""
        if len(self.views) < 2:
            return 0.0
        normals = np.array([each.normal for each in self.views])
        return math.acos(float(np.clip((normals @ normals.T).min(), -1, 1)))

    @property
    def advice(self) -> str | None:
        """What to do next; None: nothing, this is enough."""
        if self._foreign > self.seen:
            return self._other_board()
        if not self.views:
            return "show the board"
        if self.turned < WANTED_TURN:
            return "tilt the board, to all sides"
        if self.covered < WANTED_COVERED:
            return "bring the board to the edges and corners of the picture"
        if len(self.views) < WANTED_VIEWS:
            return "move the board about, nearer and farther"
        return None

    def _other_board(self) -> str:
        because = (
            f"marker {self._stray} is there, and this board has 0 to {self.board.markers - 1}"
            if self._stray is not None
            else "its markers lie otherwise"
        )
        return (
            f"the board seen is not one of {self.board.name}: {because}; "
            "say its size with --squares COLUMNSxROWS, or print one with --board FILE"
        )

    def solve(self) -> Calibrated:
        """The camera. Raises ConfigError where the views do not say it, with what is lacking."""
        self._check()
        assert self._size is not None
        views = _spread(self.views, MOST_VIEWS)
        fit = Calibrated.of(views, self._size)
        limit = OUTLIER * float(np.median(fit.errors))
        kept = [view for view, error in zip(views, fit.errors, strict=True) if error <= limit]
        if LEAST_VIEWS <= len(kept) < len(views):
            fit = Calibrated.of(kept, self._size)
        fit.check()
        return replace(fit, not_fit=len(views) - fit.views, covered=self.covered)

    def _check(self) -> None:
        if not self.frames:
            raise ConfigError("no frames to calibrate from")
        if self._foreign > self.seen:
            raise ConfigError(self._other_board())
        if len(self.views) < LEAST_VIEWS:
            raise ConfigError(
                f"the board is seen in {self.seen} of {self.frames} frames, in {len(self.views)} "
                f"different views; {LEAST_VIEWS} are needed, {WANTED_VIEWS} are good: print it "
                "with --board FILE, and move and tilt it in the light"
            )
        if self.turned < LEAST_TURN:
            raise ConfigError(
                f"all views show the board from the same side (within "
                f"{math.degrees(self.turned):.0f} degrees), which says nothing of the focal "
                "length: tilt it to all sides"
            )
        if self.covered < LEAST_COVERED:
            raise ConfigError(
                f"the board was in {self.covered:.0%} of the picture only, which says nothing of "
                "the lens elsewhere: bring it to the edges and corners, and nearer"
            )


def _moved(one: BoardView, other: BoardView) -> float:
    """Pixels between two views' outlines, the mean."""
    return float(np.linalg.norm(one.outline - other.outline, axis=1).mean())


def _spread(views: Sequence[BoardView], most: int) -> list[BoardView]:
    """So many of the views, each as far as can be from those before."""
    if len(views) <= most:
        return list(views)
    outlines = np.array([each.outline for each in views])
    chosen = [0]
    away = np.full(len(views), np.inf)
    while len(chosen) < most:
        apart = np.linalg.norm(outlines - outlines[chosen[-1]], axis=2).mean(axis=1)
        away = np.minimum(away, apart)
        chosen.append(int(away.argmax()))
    return [views[number] for number in chosen]
