"""Immersive online shopping: place a virtual couch in your room and restyle it by hand.

The first scenario of the Heimdall paper (section 2.1): detection finds where the couch may
stand, segmentation keeps people in front of it, and the style network paints its fabric. A pinch
drags the couch, two pinches turn and scale it; so do the mouse's left and right button and its
wheel. Keys: S or 1-4 choose the fabric, arrows turn and scale.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from heimdall import DNN, Anchor, App, Detection, Hand, Key, Pointer, Scene, Scroll
from heimdall.render.mesh import weave

from .content.pages import card

FABRICS = (("Harbour", 0, 899), ("Midnight", 7, 949), ("Meadow", 12, 929), ("Dune", 19, 979))
SURFACES = ("dining table", "bed")
FURNITURE = ("couch", "chair", "potted plant", "tv", "refrigerator")
PINCH = 0.35
SCALES = (0.15, 0.9)  # smallest and largest couch: its width over the picture's


class Shopping(App):
    """Place a virtual couch in your room and restyle it by hand."""

    title = "Online shopping"
    fps = 30
    scheduler = "max-total"
    clip = "box.mp4"
    keys: ClassVar = {
        "s": "next fabric",
        **{str(number): f"fabric {name}" for number, (name, *_) in enumerate(FABRICS, 1)},
        "left": "turn",
        "right": "turn",
        "up": "larger",
        "down": "smaller",
    }
    dnns = (  # rates as in the paper's Table 1
        DNN("detect", model="nanodet", rate_hz=1, max_rate_hz=5),
        DNN("segment", model="selfie", rate_hz=1, max_rate_hz=5),
        DNN("hand", model="hand", rate_hz=2, max_rate_hz=10),
        DNN(
            "style",
            model="multistyle",
            on_event=True,
            latency_constraint_ms=100,
            priority="high",
            options={"size": (192, 192)},
        ),
    )

    def __init__(self) -> None:
        super().__init__()
        self.place = np.array((0.46, 0.80))  # of the picture's width and height
        self.pin: Anchor | None = None  # keeps it there while the camera moves
        self.placed_by_hand = False
        self.yaw = -20.0
        self.scale = 0.42  # couch width over picture width
        self.grips = np.empty((0, 2))  # where fingers hold it
        self.hold = np.zeros(2)  # from there to where it stands
        self.swatch = np.ascontiguousarray(weave()[..., ::-1])  # BGR, as pictures come in
        self.cards = [
            card("Hygge sofa", ("3 seats, 210 cm", f"Fabric: {name}"), f"€ {price}")
            for name, _, price in FABRICS
        ]
        self.texture: np.ndarray | None = None
        self.wanted = self.shown = 0  # fabrics: asked for; painted
        self.far_edges: deque[float] = deque(maxlen=30)  # of the surface, over the picture height
        self.frame_size = np.array((640.0, 480.0))
        self.pointer = np.zeros(2)

    def on_start(self) -> None:
        self.restyle(0)

    def demo_events(self) -> Iterator[float]:
        while True:
            yield 2.0
            self.restyle(self.wanted + 1)

    def restyle(self, fabric: int) -> None:
        """Paint the couch in another fabric."""
        self.wanted = fabric % len(FABRICS)
        self.request("style", style=FABRICS[self.wanted][1], picture=self.swatch)

    def on_result(self, dnn, result, frame) -> None:
        self.frame_size = np.array(frame.image.shape[1::-1], float)
        if dnn == "detect":
            self.stand_on_surface(result)
        elif dnn == "hand":
            self.follow_pinch(result)
        elif dnn == "style":
            self.texture, self.shown = result.image, self.wanted

    def stand_on_surface(self, objects: list[Detection]) -> None:
        """Until somebody moves it, the couch stands on the table or bed that fills the view.

        What lies on a table lifts the top edge of its box, so the lowest of late counts.
        """
        width, height = self.frame_size
        for found in objects:
            left, top, right, bottom = found.box
            if found.label in SURFACES and right - left > 0.8 * width and bottom > 0.9 * height:
                self.far_edges.append(top / height)
        if self.far_edges and not self.placed_by_hand:
            far_edge = np.clip(max(self.far_edges), 0.35, 0.6)
            self.place[1] += 0.2 * (far_edge + 0.65 * (1 - far_edge) - self.place[1])

    def follow_pinch(self, hands: list[Hand]) -> None:
        """A pinch on the couch grabs it; it goes with the hand until the fingers open. A second
        pinch anywhere turns and scales it, as two fingers do with a picture."""
        grips = np.array([h.points[[4, 8], :2].mean(axis=0) for h in hands if h.pinch < PINCH])
        width = self.scale * self.frame_size[0]
        if len(grips) and not len(self.grips):
            away = np.linalg.norm(grips - (self.at() - (0, 0.2 * width)), axis=1)
            grips = grips if away.min() < 0.5 * width else grips[:0]
        if len(grips) == len(self.grips) == 2:
            before, now = np.diff(self.grips, axis=0)[0], np.diff(grips, axis=0)[0]
            self.resize(float(np.linalg.norm(now) / max(np.linalg.norm(before), 1.0)))
            turned = np.arctan2(now[1], now[0]) - np.arctan2(before[1], before[0])
            self.yaw -= np.degrees((turned + np.pi) % (2 * np.pi) - np.pi)
        elif len(grips):
            self.hold = self.hold if len(self.grips) else self.at() - grips[0]
            self.put(grips[0] + self.hold)
        self.grips = grips

    def put(self, point: np.ndarray) -> None:
        """Stand the couch on a point of the picture, and keep it there in the world."""
        self.placed_by_hand = True
        self.place = np.clip(point / self.frame_size, 0.05, 0.98)
        x, y = self.place * self.frame_size
        self.pin = self.anchor((float(x), float(y)))

    def resize(self, factor: float) -> None:
        self.scale = float(np.clip(self.scale * factor, *SCALES))

    def at(self) -> np.ndarray:
        """Where the couch stands in the picture being drawn."""
        return np.array(self.pin.at) if self.pin else self.place * self.frame_size

    def draw(self, scene: Scene) -> None:
        x, y = self.at()
        width = self.scale * self.frame_size[0]
        scene.mesh("couch", at=(x, y), width=width, yaw=self.yaw, texture=self.texture)
        mask = self.tracked("segment")
        if mask is not None:
            scene.occlude(mask)
        objects = self.tracked("detect") or []
        scene.boxes([found for found in objects if found.label in FURNITURE])
        scene.hands(self.tracked("hand") or [])
        self.draw_card(scene, np.array((x + 0.5 * width, y - 0.52 * width)))

    def draw_card(self, scene: Scene, corner: np.ndarray) -> None:
        """Name, fabric and price, beside the couch, inside the picture."""
        label = self.cards[self.shown]
        size = 0.26 * self.frame_size[0] * np.array((1, label.shape[0] / label.shape[1]))
        corner = np.clip(corner, 8, self.frame_size - size - 8)
        scene.picture(label, corner + np.array([(0, 0), (1, 0), (1, 1), (0, 1)]) * size)

    def on_key(self, key: Key) -> None:
        if not key.pressed:
            return
        if key.name == "s":
            self.restyle(self.wanted + 1)
        elif key.name.isdigit() and 1 <= int(key.name) <= len(FABRICS):
            self.restyle(int(key.name) - 1)
        elif key.name in ("left", "right"):
            self.yaw += 15 if key.name == "right" else -15
        elif key.name in ("up", "down"):
            self.resize(1.1 if key.name == "up" else 1 / 1.1)

    def on_pointer(self, pointer: Pointer, scene: Scene) -> None:
        here = np.array(scene.to_picture(pointer.x, pointer.y))
        if "left" in pointer.buttons:
            self.put(here)
        elif "right" in pointer.buttons:
            across, down = (here - self.pointer) / self.frame_size
            self.yaw += 180 * across
            self.resize(float(np.exp(-2 * down)))
        self.pointer = here

    def on_scroll(self, scroll: Scroll) -> None:
        self.resize(1.06**scroll.dy)
