"""What a pose is found by: printed markers, boards of them, and pictures of known width.

Axes of each: metres, the origin in its middle, x right, y up, z out of it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np

from heimdall.capture.readers import read_picture
from heimdall.errors import ConfigError, DeviceError, unknown
from heimdall.tracking.pose.features import learnt, matched
from heimdall.tracking.pose.reference import LEAST_POINTS, Reference, corners_of

CELL_PX = 16  # of a marker's picture
PICTURE_PX = 720  # longer side of an image target's picture, at most
LEAST_FEATURES = 40
SAME_SHARE = 0.25  # of one picture's features that another one shows too
COMPARED = 360  # features of a picture, the finest of all, that tell it from another one
_PREFIX = "DICT_"
# The first tag of each family as AprilRobotics prints it: its cells row by row from the top left,
# white is 1 (github.com/AprilRobotics/apriltag, tag36h11.c and its siblings).
_FIRST_TAGS = {"16h5": 0x231B, "25h9": 0x155CBF1, "36h10": 0x1CA92A687, "36h11": 0xD5D628584}


@dataclass(frozen=True)
class Marker:
    """A square fiducial of one of OpenCV's dictionaries (``DICT_4X4_50``, ``DICT_APRILTAG_36h11``);
    ``width_m`` is the side of its black square, without the white margin."""

    dictionary: str
    number: int
    width_m: float

    def __post_init__(self) -> None:
        _check_width(self.width_m, f"marker {self.number}")
        count = len(dictionary(self.dictionary).bytesList)
        if not 0 <= self.number < count:
            raise ConfigError(
                f"{self.dictionary} has markers 0 to {count - 1}, and no {self.number}"
            )

    @property
    def name(self) -> str:
        """The target's name in reports."""
        return f"{self.dictionary}:{self.number}"


@dataclass(frozen=True)
class Board:
    """A grid of markers that are numbered row by row from ``first``, ``gap_m`` apart."""

    dictionary: str
    columns: int
    rows: int
    marker_m: float
    gap_m: float
    first: int = 0

    def __post_init__(self) -> None:
        _check_width(self.marker_m, "a board's marker")
        _check_width(self.gap_m, "a board's gap")
        count = len(dictionary(self.dictionary).bytesList)
        if self.columns < 1 or self.rows < 1 or self.first < 0:
            raise ConfigError(f"a board of {self.columns}x{self.rows} markers from {self.first}")
        if self.first + self.columns * self.rows > count:
            raise ConfigError(
                f"{self.dictionary} has {count} markers; a board of {self.columns}x{self.rows} "
                f"from {self.first} needs more"
            )

    @property
    def name(self) -> str:
        """The target's name in reports."""
        return f"{self.dictionary}:{self.columns}x{self.rows}"


@dataclass(frozen=True, eq=False)
class ImageTarget:
    """A flat picture, printed ``width_m`` wide: a file, or BGR or grey uint8."""

    image: str | Path | np.ndarray
    width_m: float

    def __post_init__(self) -> None:
        _check_width(self.width_m, self.name)

    @property
    def name(self) -> str:
        """The target's name in reports."""
        return "picture" if isinstance(self.image, np.ndarray) else Path(self.image).name


Target = Marker | Board | ImageTarget


@dataclass(frozen=True, eq=False)
class Prepared:
    """A target as it is looked for: ``reference`` to follow it, and what it is found by, either
    ``fiducials``, the corners (4, 3) of each (dictionary, number), or ``features``: descriptors
    (n, 32) and their places (n, 3)."""

    target: Target
    reference: Reference
    fiducials: Mapping[tuple[str, int], np.ndarray]
    descriptors: np.ndarray | None = None
    places: np.ndarray | None = None

    @property
    def corners(self) -> np.ndarray:
        """The corners of the whole, metres (4, 3), clockwise from the top left."""
        target = self.target
        if isinstance(target, Marker):
            return _rectangle(target.width_m, target.width_m)
        if isinstance(target, ImageTarget):
            rows, columns = self.reference.picture.shape
            return _rectangle(target.width_m, target.width_m * rows / columns)
        sides = (
            count * target.marker_m + (count - 1) * target.gap_m
            for count in (target.columns, target.rows)
        )
        return _rectangle(*sides)


@functools.cache
def dictionary(name: str) -> cv2.aruco.Dictionary:
    """A dictionary of OpenCV; families of AprilTags stand upright as AprilRobotics prints them,
    with any version of OpenCV. Raises ConfigError for a name that it does not know, with those
    that it does."""
    number = getattr(cv2.aruco, name, None) if name.startswith(_PREFIX) else None
    if number is None:
        raise ConfigError(unknown("dictionary", name, [n for n in dir(cv2.aruco) if _PREFIX in n]))
    known = cv2.aruco.getPredefinedDictionary(number)
    first = _FIRST_TAGS.get(name.removeprefix("DICT_APRILTAG_").lower())
    return known if first is None else _upright(name, known, first)


def _upright(name: str, known: cv2.aruco.Dictionary, first: int) -> cv2.aruco.Dictionary:
    """A dictionary turned so that the cells of its first tag are ``first``. OpenCV 4 and 5.0 have
    AprilTags turned by 180 degrees (opencv-python, issue 1195), later ones do not."""
    side = known.markerSize
    cells = [cv2.aruco.Dictionary.getBitsFromByteList(each[None], side) for each in known.bytesList]
    wanted = np.array([first >> at & 1 for at in reversed(range(side**2))]).reshape(side, side)
    for turn in range(4):
        if (np.rot90(cells[0], turn) == wanted).all():
            turned = [
                cv2.aruco.Dictionary.getByteListFromBits(np.rot90(each, turn).copy())
                for each in cells
            ]
            codes = np.concatenate(turned)
            return cv2.aruco.Dictionary(codes, side, known.maxCorrectionBits)
    raise ConfigError(f"OpenCV {cv2.__version__} has other tags in {name} than AprilRobotics")


def prepare(targets: Sequence[Target]) -> list[Prepared]:
    """All targets as they are looked for. Raises ConfigError where one has too little to be found
    by, or two cannot be told apart."""
    if not targets:
        raise ConfigError("nothing to find a pose by: give a marker, a board or a picture")
    found = [_prepared(each) for each in targets]
    _check_apart(found)
    return found


def _prepared(target: Target) -> Prepared:
    if isinstance(target, ImageTarget):
        return _of_image(target)
    if isinstance(target, Marker):
        board = Board(target.dictionary, 1, 1, target.width_m, target.width_m, target.number)
        return replace(_of_board(board), target=target)
    return _of_board(target)


def _of_board(board: Board) -> Prepared:
    known = dictionary(board.dictionary)
    side = (known.markerSize + 2) * CELL_PX
    pixel = board.marker_m / side
    pitch, margin = (board.marker_m + board.gap_m) / pixel, CELL_PX
    size = [
        math.ceil((count - 1) * pitch + side) + 2 * margin for count in (board.rows, board.columns)
    ]
    picture = np.full(size, 255, np.uint8)
    middle = (np.array(size[::-1]) - 1) / 2
    fiducials = {}
    for index in range(board.columns * board.rows):
        row, column = divmod(index, board.columns)
        number = board.first + index
        left, top = (margin + round(each * pitch) for each in (column, row))
        drawn = cv2.aruco.generateImageMarker(known, number, side)
        picture[top : top + side, left : left + side] = drawn
        at = (np.array([left, top]) + (side - 1) / 2 - middle) * (pixel, -pixel)
        square = _rectangle(board.marker_m, board.marker_m)
        fiducials[board.dictionary, number] = square + np.array([*at, 0.0])
    return Prepared(board, _flat(picture, pixel), fiducials)


def _of_image(target: ImageTarget) -> Prepared:
    grey = _grey(target)
    shrunk = min(1.0, PICTURE_PX / max(grey.shape))
    if shrunk < 1:
        size = [max(1, round(side * shrunk)) for side in grey.shape[::-1]]
        grey = cv2.resize(grey, size, interpolation=cv2.INTER_AREA)
    pixel = target.width_m / grey.shape[1]
    reference = _flat(grey, pixel)
    descriptors, places = learnt(grey)
    if len(descriptors) < LEAST_FEATURES or len(reference.places) < 2 * LEAST_POINTS:
        raise ConfigError(
            f"{target.name} has too little to be found by ({len(descriptors)} features, "
            f"{LEAST_FEATURES} are needed): take a picture with more detail and contrast"
        )
    return Prepared(target, reference, {}, descriptors, _on_plane(places, grey, pixel))


def _grey(target: ImageTarget) -> np.ndarray:
    image = target.image if isinstance(target.image, np.ndarray) else _read(Path(target.image))
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or not image.size:
        raise ConfigError(f"a target is BGR or grey uint8, not {image.dtype} of {image.shape}")
    return image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)


def _read(path: Path) -> np.ndarray:
    try:
        return read_picture(path)
    except DeviceError as error:
        raise ConfigError(f"cannot read target {path}: {error}") from error


def _flat(picture: np.ndarray, pixel: float) -> Reference:
    places, levels = corners_of(picture)
    return Reference(picture, places, _on_plane(places, picture, pixel), levels)


def _on_plane(places: np.ndarray, picture: np.ndarray, pixel: float) -> np.ndarray:
    """Places (n, 2) of a picture whose pixels are so large, in its own axes, (n, 3)."""
    middle = (np.array(picture.shape[::-1]) - 1) / 2
    flat = (places - middle) * (pixel, -pixel)
    return np.column_stack([flat, np.zeros(len(flat))])


def _rectangle(width: float, height: float) -> np.ndarray:
    x, y = width / 2, height / 2
    return np.array([[-x, y, 0], [x, y, 0], [x, -y, 0], [-x, -y, 0]])


def _check_apart(found: Sequence[Prepared]) -> None:
    taken: dict[tuple[str, int], str] = {}
    for each in found:
        for key in each.fiducials:
            if key in taken:
                raise ConfigError(f"marker {key[0]}:{key[1]} is given twice")
            taken[key] = each.target.name
    pictures = [each for each in found if each.descriptors is not None]
    for number, one in enumerate(pictures):
        for other in pictures[number + 1 :]:
            if _same(one, other):
                raise ConfigError(
                    f"{one.target.name} and {other.target.name} look alike: nothing could tell "
                    "which of the two is seen"
                )


def _same(one: Prepared, other: Prepared) -> bool:
    """True if a good part of one picture is in the other one."""
    assert one.descriptors is not None
    assert other.descriptors is not None
    assert one.places is not None
    assert other.places is not None
    pairs = matched(one.descriptors[:COMPARED], other.descriptors, other.places)
    if len(pairs) < 12:
        return False
    first, second = one.places[pairs[:, 0], :2], other.places[pairs[:, 1], :2]
    reach = 0.02 * float(np.ptp(other.places, axis=0).max())
    _, agree = cv2.findHomography(first, second, cv2.RANSAC, reach)
    least = min(len(one.descriptors), COMPARED)
    return agree is not None and int(agree.sum()) > SAME_SHARE * least


def _check_width(width_m: float, what: str) -> None:
    if not (isinstance(width_m, int | float) and math.isfinite(width_m) and 0 < width_m < 1000):
        raise ConfigError(f"{what}: {width_m!r} is no width in metres")
