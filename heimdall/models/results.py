"""Results that apps receive. Coordinates are pixels of the frame the DNN ran on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.models.gestures import gesture
from heimdall.models.head import head_pose


@dataclass(frozen=True)
class Detection:
    """A box (left, top, right, bottom) with a label, a score in 0..1 and optional key points.

    ``id`` is the same for the same thing in all results of a run, and None where it is not tracked.
    """

    label: str
    score: float
    box: tuple[float, float, float, float]
    points: np.ndarray | None = None  # (n, 2) pixels
    id: int | None = None


@dataclass(frozen=True)
class Label:
    """What a picture shows, or the word that was said, a score in 0..1, and of a network with early
    exits the one that said so ("": it has none)."""

    name: str
    score: float
    exit: str = ""


@dataclass(frozen=True)
class Speech:
    """How likely a voice is in the newest window of sound, 0..1, and whether somebody speaks."""

    probability: float
    speaking: bool


@dataclass(frozen=True)
class Mask:
    """Probability 0..1 of each cell, float32 (h, w), stretched over the whole frame."""

    values: np.ndarray


@dataclass(frozen=True)
class Hand:
    """21 points (x, y in frame pixels; z in pixels too, from the wrist, less is nearer), a score,
    and "left" or "right". ``world``: the same points in metres from the middle of the hand, x to
    the right of the picture, y down, z away from the camera."""

    points: np.ndarray  # (21, 3) float32
    score: float
    side: str
    world: np.ndarray | None = None  # (21, 3) float32

    @property
    def pinch(self) -> float:
        """Thumb tip to index tip, over the palm's length: below about 0.35 it is a pinch."""
        tip = np.linalg.norm(self.points[4, :2] - self.points[8, :2])
        palm = np.linalg.norm(self.points[0, :2] - self.points[9, :2])
        return float(tip / max(float(palm), 1e-6))

    @property
    def pointing(self) -> bool:
        """The index finger is stretched out, the middle finger is not."""
        index, middle = np.linalg.norm(self.points[[8, 12], :2] - self.points[0, :2], axis=1)
        return bool(index > 1.25 * middle)

    @property
    def gesture(self) -> str | None:
        """Which of `heimdall.models.gestures.GESTURES` this is, if any: "open palm", "fist",
        "point", "victory", "pinch", "thumb up", "thumb down"."""
        return gesture(self.points if self.world is None else self.world)


@dataclass(frozen=True)
class FaceMesh:
    """468 points of a face (x, y in frame pixels; z in pixels too, from the middle of the head,
    less is nearer), MediaPipe's order; a score; and of both irises, the left one in the picture
    first, the middle and four points on the rim."""

    points: np.ndarray  # (468, 3) float32
    score: float
    irises: np.ndarray  # (2, 5, 3) float32

    def pose(self, camera: Camera) -> Pose:
        """From the head's axes to the camera's, metres: x to the right of a picture that it looks
        out of, y up, z out of the face (`heimdall.models.head`). How far it is follows from an
        adult's size, and from the focal length. ``camera.pose.inverse.after(...)`` leads on to the
        world."""
        return head_pose(self.points, camera)

    @property
    def mouth_open(self) -> float:
        """The gap between the lips over the mouth's width: 0 is shut, above about 0.3 is open."""
        return self._ratio(13, 14, 78, 308)

    @property
    def eyes_open(self) -> tuple[float, float]:
        """The gap between the lids over the eye's width, of both eyes, the left one in the picture
        first: below about 0.12 it is shut."""
        return self._ratio(159, 145, 33, 133), self._ratio(386, 374, 362, 263)

    def _ratio(self, *ends: int) -> float:
        one, other, left, right = self.points[list(ends)]
        return float(np.linalg.norm(one - other) / max(float(np.linalg.norm(left - right)), 1e-6))


@dataclass(frozen=True)
class Body:
    """17 joints (COCO order): (x, y in frame pixels, score)."""

    joints: np.ndarray  # (17, 3) float32


@dataclass(frozen=True)
class Body3D:
    """33 joints (`heimdall.models.body.JOINTS`) in the frame and in space, and a score.

    ``joints``: x, y in frame pixels; z in pixels too, from the middle of the hips, less is nearer;
    how visible, 0..1. ``world``: metres from the middle of the hips, x to the right of the picture,
    y down, z away from the camera."""

    joints: np.ndarray  # (33, 4) float32
    world: np.ndarray  # (33, 3) float32
    score: float


@dataclass(frozen=True)
class TextRegion:
    """A text line as a quadrilateral (4, 2) in frame pixels, clockwise from the top left."""

    corners: np.ndarray
    score: float


@dataclass(frozen=True)
class TextLine(TextRegion):
    """A text line that was read: ``corners`` clockwise from where its first letter begins, on top;
    ``score`` is the mean probability of its letters."""

    text: str


@dataclass(frozen=True)
class Picture:
    """An output picture, RGB uint8 (h, w, 3)."""

    image: np.ndarray
