"""AR emoji: people wear the heads of characters, in a room painted by a network.

A scenario of the Heimdall paper (Table 1): the points of each face tell where the head is and how
it is turned, in space, and whether mouth and eyes are open; a character's head does the same.
Segmentation keeps the people while the style network paints the room behind them. Keys: S paints
the room in the next style, B shows it or the camera's picture, C deals out other characters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np

from heimdall import DNN, App, FaceMesh, Key, Mask, Scene
from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose

# In assets/content, by scripts/heads.py: heads, and what a dandy wears on his own.
CHARACTERS = ("fox.glb", "panda.glb", "cat.glb", "robot.glb", "smiley.glb", "dandy.glb")
LARGER = 1.08  # than the head it hides, hair and all
SHUT, WIDE = 0.03, 0.40  # openings of a mouth, over its width
BLINK = 0.12  # opening of an eye, over its width, below which it is shut
HERE = Pose(np.eye(3), np.zeros(3))  # without a tracked world, the camera is where it begins
STYLES = (7, 0, 19, 12)
PAINTED = (320, 240)  # width and height of the painted room
FORGET = 30  # frames after which a face that is gone loses its character


@dataclass
class Role:
    """Who wears which head: a face is recognised by where it was in the last frame."""

    character: str
    face: FaceMesh
    unseen: int = 0

    def distance(self, face: FaceMesh) -> float:
        """How far ``face`` is from where this one was, in widths of it."""
        return float(np.linalg.norm(centre(face) - centre(self.face)) / max(width(self.face), 1.0))


class Emoji(App):
    """Wear an animal's head, or a robot's, that speaks and blinks as you do, in a painted room."""

    title = "AR emoji"
    fps = 30
    scheduler = "max-total"
    clip = "single_face.mp4"
    keys: ClassVar = {"s": "next painting", "b": "painting or camera", "c": "other characters"}
    dnns = (  # rates as in the paper's Table 1
        DNN("face", model="face-mesh", rate_hz=1, max_rate_hz=10, options={"most": 5}),
        DNN("segment", model="selfie", rate_hz=1, max_rate_hz=10),
        DNN(
            "style",
            model="multistyle",
            on_event=True,
            latency_constraint_ms=100,
            priority="high",
            options={"size": PAINTED[::-1]},
        ),
    )

    def __init__(self) -> None:
        super().__init__()
        self.roles: list[Role] = []
        self.loading = list(CHARACTERS)  # heads that are not there yet
        self.first = 0  # whose turn it is among the characters
        self.style = -1
        self.painting: np.ndarray | None = None
        self.painted = True  # is the painting shown
        self.image: np.ndarray | None = None  # the newest picture of which there is a mask
        self.mask: Mask | None = None

    def demo_events(self) -> Iterator[float]:
        while True:
            yield 2.0
            self.restyle()

    def restyle(self) -> None:
        """Paint the room, without the people in it, in the next style."""
        if self.image is not None and self.mask is not None:
            self.style = (self.style + 1) % len(STYLES)
            room = without_people(self.image, self.mask)
            self.request("style", style=STYLES[self.style], picture=room)

    def on_result(self, dnn, result, frame) -> None:
        if dnn == "segment":
            self.image, self.mask = frame.image, result
            if self.style < 0:
                self.restyle()
        elif dnn == "style":
            self.painting = result.image

    def draw(self, scene: Scene) -> None:
        mask = self.tracked("segment")
        if self.painted and self.painting is not None and mask is not None:
            scene.background(self.painting, mask)
        self.cast(self.tracked("face") or [])
        camera = scene.camera or Camera.guess(*scene.picture_size)
        scene.camera = camera = camera.at(camera.pose or HERE)
        self.loading = [each for each in self.loading if not scene.model(each, at=HERE, fade=0)]
        for role in self.roles:
            if not role.unseen:
                wear(role, camera, scene)

    def cast(self, faces: list[FaceMesh]) -> None:
        """Give every face the character that it had before, or a free one."""
        for role in self.roles:
            role.unseen += 1
        for face in faces:
            near = [role for role in self.roles if role.unseen and role.distance(face) < 0.7]
            if near:
                role = min(near, key=lambda role: role.distance(face))
                role.face, role.unseen = face, 0
            else:
                self.roles.append(Role(self.free_character(), face))
        self.roles = [role for role in self.roles if role.unseen < FORGET]

    def free_character(self) -> str:
        """The next character, a free one if there is any."""
        turn = [CHARACTERS[(self.first + k) % len(CHARACTERS)] for k in range(len(CHARACTERS))]
        worn = [role.character for role in self.roles]
        return min(turn, key=worn.count)

    def on_key(self, key: Key) -> None:
        if not key.pressed:
            return
        if key.name == "s":
            self.restyle()
        elif key.name == "b":
            self.painted = not self.painted
        elif key.name == "c":
            self.first += 1
            self.roles = []


def wear(role: Role, camera: Camera, scene: Scene) -> None:
    """Draw a character's head where the face is, as it looks."""
    assert camera.pose is not None
    scene.model(
        role.character,
        at=camera.pose.inverse.after(role.face.pose(camera)),
        scale=LARGER,
        ground=False,
        animation="expression",
        time=expression(role.face),
    )


def expression(face: FaceMesh) -> float:
    """The moment of a head's animation that looks like this: 0 to 1 as the mouth opens, and 2 more
    with the eyes shut."""
    mouth = (face.mouth_open - SHUT) / (WIDE - SHUT)
    return float(np.clip(mouth, 0, 0.999)) + 2 * (max(face.eyes_open) < BLINK)


def centre(face: FaceMesh) -> np.ndarray:
    """The middle of a face, (2,)."""
    return np.asarray(face.points[:, :2].mean(axis=0))


def width(face: FaceMesh) -> float:
    """How wide a face is, pixels."""
    return float(np.ptp(face.points[:, 0]))


def without_people(image: np.ndarray, mask: Mask) -> np.ndarray:
    """The picture, BGR of ``PAINTED`` size, with the people filled in by what is around them."""
    room = cv2.resize(image, PAINTED, interpolation=cv2.INTER_AREA).astype(np.float32)
    people = cv2.resize(mask.values, PAINTED)
    empty = cv2.erode((people < 0.2).astype(np.float32), np.ones((9, 9), np.uint8))[..., None]
    for reach in (15, 61, 2 * PAINTED[0] - 1):
        around = cv2.blur(room * empty, (reach, reach))
        weight = cv2.blur(empty, (reach, reach))[..., None]
        room = np.where(empty > 0, room, around / np.maximum(weight, 1e-4))
        empty = np.maximum(empty, (weight > 0.02).astype(np.float32))
    return room.clip(0, 255).astype(np.uint8)
