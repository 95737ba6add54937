"""The room of shopping's clip, with the exact way of its camera: a table in a home.

A hand-held camera goes around one half of the table and back to where it began, so that the clip
can be looped. Nothing in the room says how large it is. `scripts/room.py` writes the clip.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import cv2
import numpy as np

from benchmarks.rooms import Board, Room, board, sides_of
from benchmarks.wood import table
from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.system.paths import ASSETS

CLIP = ASSETS / "media" / "room.mp4"
SIZE, FPS, SECONDS = (640, 480), 30, 12
CAMERA = Camera(*SIZE, 540.0, 540.0, 319.5, 239.5)
FINER = 2  # pixels of a frame are drawn so often in each direction
TABLE_M, TABLE_SIDES = 0.74, (1.5, 0.9)
WIDTH_M, DEPTH_M, HEIGHT_M = 4.4, 4.2, 2.5
BOOKS = (  # where, height above the table, sides (m), turn (degrees), cover
    ((-0.60, -0.28), 0.000, (0.17, 0.24, 0.030), 12, (60, 74, 150)),
    ((-0.59, -0.27), 0.030, (0.14, 0.21, 0.026), 24, (150, 96, 48)),
    ((-0.60, -0.28), 0.056, (0.12, 0.18, 0.030), 4, (70, 140, 110)),
    ((0.58, -0.20), 0.000, (0.16, 0.23, 0.040), -30, (40, 120, 190)),
    ((0.59, -0.21), 0.040, (0.15, 0.20, 0.022), -16, (130, 60, 110)),
)
TITLES = ("ATLAS", "ROOMS", "NORTH", "CLAY", "LIGHT")
BOXES = (  # on the floor: foot, half sides (m), colour
    ((-1.7, 0, -1.65), (0.40, 0.42, 0.26), (96, 120, 140)),
    ((1.75, 0, -1.70), (0.30, 0.80, 0.24), (120, 140, 150)),
)


class Home(Room):
    """The room, and the camera's way."""

    def __init__(self) -> None:
        super().__init__(seed=3, size=(SIZE[0] * FINER, SIZE[1] * FINER), frames=SECONDS * FPS)
        self.camera = CAMERA.scaled(*self.size)

    def pose(self, at_s: float) -> Pose:
        """World (y up, the origin on the floor) to camera."""
        turn = 2 * np.pi * at_s / SECONDS
        angle = np.radians(36 * np.sin(turn))
        away = 1.12 - 0.16 * np.cos(2 * turn)
        shake = 0.0025 * np.sin(np.array([19, 23, 29]) * turn)  # of a hand
        high = 1.36 + 0.1 * np.cos(turn + 0.6)
        eye = np.array([away * np.sin(angle), high, away * np.cos(angle)])
        look = np.array([0.06 * np.sin(turn), TABLE_M + 0.1, -0.08]) + shake[::-1]
        forward = look - eye - shake
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, (0.03 * np.sin(2 * turn), 1.0, 0.0))
        right /= np.linalg.norm(right)
        rotation = np.stack([right, np.cross(forward, right), forward])
        return Pose(rotation, -rotation @ (eye + shake))

    @cached_property
    def boards(self) -> list[Board]:
        """All that there is."""
        x, z = WIDTH_M / 2, DEPTH_M / 2
        down = [0, -HEIGHT_M, 0]
        walls = [
            board([-x, HEIGHT_M, -z], [WIDTH_M, 0, 0], down, self._wall((186, 202, 208), 3)),
            board([-x, HEIGHT_M, z], [0, 0, -DEPTH_M], down, self._wall((176, 190, 200), 2)),
            board([x, HEIGHT_M, -z], [0, 0, DEPTH_M], down, self._wall((172, 188, 196), 2)),
        ]
        floor = cv2.resize(table(9, things=False), (1400, 1400), interpolation=cv2.INTER_AREA)
        floor = cv2.GaussianBlur((0.55 * floor).astype(np.uint8), (0, 0), 2.0)
        across, deep = TABLE_SIDES
        top = table(5)[200:1100, 300:1800]
        edge = np.full((24, 600, 3), (48, 78, 106), np.uint8)
        left, front = -across / 2, deep / 2
        flats = [
            board([-x, 0, -z], [WIDTH_M, 0, 0], [0, 0, DEPTH_M], floor),
            board([left, TABLE_M, -front], [across, 0, 0], [0, 0, deep], top),
            board([left, TABLE_M, front], [across, 0, 0], [0, -0.04, 0], edge),
            board([left, TABLE_M, -front], [0, 0, deep], [0, -0.04, 0], edge),
            board([-left, TABLE_M, front], [0, 0, -deep], [0, -0.04, 0], edge),
        ]
        books = [
            each
            for number, (spot, up, sides, turn, cover) in enumerate(BOOKS)
            for each in self._book(spot, up, sides, turn, cover, TITLES[number])
        ]
        return [*walls, *flats, *books, *(b for box in BOXES for b in self._chest(*box))]

    def _wall(self, colour: Sequence[int], pictures: int) -> np.ndarray:
        """Plaster, with pictures on it."""
        wall = cv2.merge([self._plain(each, 1.2)[..., 0] for each in colour])
        for place in range(pictures):
            width, height = self._chance.integers(130, 210, 2).tolist()
            left = int((place + 0.5) * 1024 / pictures - width / 2)
            top = int(self._chance.integers(330, 420))
            wall[top : top + height, left : left + width] = self._painting(width, height)
        return wall

    def _painting(self, width: int, height: int) -> np.ndarray:
        """Shapes on paper, in a frame."""
        paper = np.full((height, width, 3), 232, np.uint8)
        for _ in range(9):
            at = self._chance.integers(0, [width, height]).tolist()
            ink = self._chance.uniform(30, 220, 3).tolist()
            if self._chance.random() < 0.5:
                cv2.circle(paper, at, int(self._chance.integers(10, 42)), ink, -1, cv2.LINE_AA)
            else:
                sides = self._chance.uniform(20, 80, 2).tolist()
                box = cv2.boxPoints((at, sides, self._chance.uniform(0, 180)))
                cv2.fillConvexPoly(paper, box.astype(np.int32), ink, cv2.LINE_AA)
        cv2.rectangle(paper, (0, 0), (width - 1, height - 1), (40, 44, 52), 14)
        return paper

    def _book(
        self,
        spot: tuple[float, float],
        up: float,
        sides: tuple[float, float, float],
        turn: float,
        cover: tuple[int, int, int],
        title: str,
    ) -> list[Board]:
        wide, deep, high = sides
        c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
        across, back = np.array([c, 0, -s]) * wide, np.array([s, 0, c]) * deep
        middle = np.array([spot[0], TABLE_M + up + high, spot[1]])
        corner = middle - across / 2 - back / 2
        picture = np.full((320, 224, 3), cover, np.uint8)
        light = np.clip(np.add(cover, 90), 0, 255).tolist()
        cv2.rectangle(picture, (14, 14), (209, 305), light, 3, cv2.LINE_AA)
        cv2.putText(picture, title, (26, 90), cv2.FONT_HERSHEY_DUPLEX, 1.4, light, 3, cv2.LINE_AA)
        cv2.circle(picture, (112, 200), 52, light, -1, cv2.LINE_AA)
        cv2.circle(picture, (136, 180), 34, cover, -1, cv2.LINE_AA)
        spine = np.full((40, 320, 3), cover, np.uint8)
        cv2.putText(spine, title, (90, 31), cv2.FONT_HERSHEY_DUPLEX, 1.0, light, 2, cv2.LINE_AA)
        pages = np.full((40, 224, 3), 214, np.uint8)
        pages[::5] = 178
        fall = np.array([0, -high, 0])
        return [
            board(corner.tolist(), across.tolist(), back.tolist(), picture),
            board((corner + back).tolist(), across.tolist(), fall.tolist(), pages),
            board(corner.tolist(), back.tolist(), fall.tolist(), spine),
            board((corner + across + back).tolist(), (-back).tolist(), fall.tolist(), spine),
        ]

    def _chest(
        self,
        foot: tuple[float, float, float],
        half: tuple[float, float, float],
        colour: tuple[int, int, int],
    ) -> list[Board]:
        front = cv2.resize(self._plain(float(np.mean(colour)), 5), (256, 256))
        front = np.clip(front * (np.array(colour) / np.mean(colour)), 0, 255).astype(np.uint8)
        for row in (40, 126, 212):
            cv2.rectangle(front, (10, row - 34), (246, row + 36), (60, 70, 80), 2, cv2.LINE_AA)
            cv2.circle(front, (128, row), 6, (50, 60, 70), -1, cv2.LINE_AA)
        return sides_of(foot, half, front)
