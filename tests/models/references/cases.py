"""The pictures that reference implementations were shown, read from the bundled ones alone."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from heimdall.system import paths

Box = tuple[int, int, int, int]


@dataclass(frozen=True)
class Case:
    """A frame of a bundled picture or clip, ``turned`` clockwise by so many degrees about its
    middle; ``region`` (left, top, right, bottom): what of that is looked at."""

    name: str
    file: str
    frame: int = 0
    turned: float = 0.0
    region: Box | None = None

    def picture(self) -> np.ndarray:
        """BGR uint8 (h, w, 3), the whole frame."""
        capture = cv2.VideoCapture(str(paths.ASSETS / "media" / self.file))
        for _ in range(self.frame):
            capture.grab()
        ok, image = capture.read()
        capture.release()
        assert ok, f"{self.file} has no frame {self.frame}"
        if not self.turned:
            return image
        height, width = image.shape[:2]
        turn = cv2.getRotationMatrix2D((width / 2 - 0.5, height / 2 - 0.5), -self.turned, 1)
        return cv2.warpAffine(image, turn, (width, height), borderMode=cv2.BORDER_REPLICATE)

    def cut(self, image: np.ndarray) -> tuple[np.ndarray, tuple[int, int]]:
        """The region of the picture, for who cannot be told of one, and its corner."""
        if self.region is None:
            return image, (0, 0)
        left, top, right, bottom = self.region
        return np.ascontiguousarray(image[top:bottom, left:right]), (left, top)


# Five people: the faces of each, then whoever is seen to the hips.
PEOPLE: dict[str, Box] = {
    "man in black": (200, 0, 380, 200),
    "woman in black": (290, 190, 480, 400),
    "boy": (390, 140, 580, 340),
    "woman in a vest": (500, 260, 720, 480),
    "woman with a shawl": (640, 230, 840, 470),
}
BODIES: dict[str, Box] = {
    "man in black, seated": (20, 0, 370, 667),
    "woman in black, to the hips": (180, 190, 500, 667),
    "woman in a vest, to the hips": (440, 260, 770, 667),
}
MAN = "single_face.mp4"

FACES = (
    *(Case(name, "multi_face.jpg", region=box) for name, box in PEOPLE.items()),
    *(Case(f"man, frame {frame}", MAN, frame) for frame in (0, 36, 60)),
    Case("man, turned by 25 degrees", MAN, 36, 25),
    Case("man, turned by -25 degrees", MAN, 60, -25),
)
STANDING = (
    *(Case(name, "multi_face.jpg", region=box) for name, box in BODIES.items()),
    *(Case(f"man, frame {frame}", MAN, frame) for frame in (0, 36)),
)
HANDS = (
    *(Case(f"hand on the box, frame {frame}", "box.mp4", frame) for frame in (60, 240, 450)),
    *(Case(f"hand on the cup, frame {frame}", "cup.mp4", frame) for frame in (0, 30, 100)),
    Case("hand on the cup, turned by 90 degrees", "cup.mp4", 30, 90),
)
TEXTS = (
    Case("page on a table", "desk.mp4", 20),
    Case("page on a table, upside down", "desk.mp4", 20, 180),
    Case("page on a table, farther", "desk.mp4", 100),
    Case("printed box", "box.mp4", 120, region=(150, 20, 560, 280)),
)
