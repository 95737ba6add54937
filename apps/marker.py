"""A printed page that comes alive: a rabbit lives on it, and more come where you tap.

Print assets/media/page.png at 100% and show it to the camera. Its marker says where the camera is,
in metres, so the rabbit stands on the page at its true size, 10 cm, and one can walk around it.
What lies around the page is learnt, and keeps it there when the page has left the picture. A click
puts another rabbit on the page or the table, and so does a pinch. X takes the last one away.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from heimdall import DNN, Anchor, App, Hand, Key, Pointer, Scene, World
from heimdall import Marker as Printed

RABBIT = "rabbit.glb"
MOST = 6
SMALLER = 0.55  # the others, beside the one on the page
PINCH = 0.3
HOP_M, HOP_S, EVERY_S = 0.035, 0.5, 2.2  # how high, for how long, how often


class Marker(App):
    """A rabbit lives on a printed page, and more come where you tap."""

    title = "A page that comes alive"
    clip = "page.mp4"
    world = World(Printed("DICT_4X4_50", 7, width_m=0.08))
    hand = DNN(model="hand", rate_hz=3, max_rate_hz=8)
    keys: ClassVar = {"x": "take the last rabbit away"}
    gestures: ClassVar = {"click": "another rabbit there", "pinch": "another rabbit there"}

    def __init__(self) -> None:
        super().__init__()
        self.others: list[Anchor] = []
        self.held = self.pinched = False
        self.frames = 0

    def place(self, x: float, y: float) -> None:
        """Another rabbit, where the world is met behind a point of the picture."""
        found = self.world.hit(x, y)
        if found is not None and self.world.tracked:
            self.others = [*self.others, self.world.anchor(found)][-MOST:]

    def draw(self, scene: Scene) -> None:
        self.frames += 1
        now_s = self.frames / self.fps
        page = self.world.origin
        hop = hopping(now_s)
        scene.model(RABBIT, at=page, yaw=self.towards_camera(page), lift=hop)
        for number, other in enumerate(self.others, 1):
            later = hopping(now_s + 0.37 * number) * SMALLER
            yaw = self.towards_camera(other)
            scene.model(RABBIT, at=other, scale=SMALLER, yaw=yaw, lift=later)
        scene.hands(self.hand.tracked or [])
        if not self.world.fade:
            scene.text("Show the printed page to the camera", bold=True)

    def towards_camera(self, at: Anchor) -> float:
        """The yaw, in degrees, by which a rabbit there faces the camera."""
        if self.world.pose is None or at.pose is None:
            return 0.0
        x, _, z = at.pose.inverse.to_camera(self.world.pose.position)
        return float(np.degrees(np.arctan2(x, z)))

    def on_result(self, dnn, result, frame) -> None:
        """Closing a pinch places a rabbit between the two fingers."""
        tips = [self.between(hand) for hand in result if hand.pinch < PINCH]
        if tips and not self.pinched:
            self.place(*tips[0])
        self.pinched = bool(tips)

    @staticmethod
    def between(hand: Hand) -> tuple[float, float]:
        """The middle between thumb and index finger."""
        x, y = hand.points[[4, 8], :2].mean(axis=0)
        return float(x), float(y)

    def on_pointer(self, pointer: Pointer, scene: Scene) -> None:
        down = "left" in pointer.buttons
        if down and not self.held:
            self.place(*scene.to_picture(pointer.x, pointer.y))
        self.held = down

    def on_key(self, key: Key) -> None:
        if key.pressed and key.name == "x":
            self.others = self.others[:-1]

    def demo_events(self) -> Iterator[float]:
        for x, y in ((170, 330), (520, 360), (330, 150)):
            yield 1.2
            self.place(x, y)


def hopping(at_s: float) -> float:
    """How high a rabbit is at a time, metres: it hops now and then."""
    share = (at_s % EVERY_S) / HOP_S
    return HOP_M * 4 * share * (1 - share) if share < 1 else 0.0
