"""Immersive online shopping: place a virtual couch in your room and restyle it by hand.

The first scenario of the Heimdall paper (section 2.1): detection finds where the couch may
stand, segmentation keeps people in front of it, a pinch (or the mouse) moves it, and the
style network paints its fabric. Keys: S restyles, arrows turn and scale the couch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np

from heimdall import DNN, App
from heimdall.models.results import Detection, Hand, Mask
from heimdall.render import Key, Pointer, Scene, Scroll
from heimdall.render.mesh import weave

STYLES = (0, 7, 12, 19)
SURFACES = ("dining table", "bed")
FURNITURE = ("couch", "chair", "potted plant", "tv", "refrigerator")
PINCH = 0.35


class Shopping(App):
    """Place a virtual couch in your room and restyle it by hand."""

    title = "Online shopping"
    fps = 30
    scheduler = "max-total"
    clip = "box.mp4"
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
        self.placed_by_hand = self.grabbed = False
        self.yaw = -20.0
        self.scale = 0.42  # couch width over picture width
        self.swatch = np.ascontiguousarray(weave()[..., ::-1])  # BGR, as pictures come in
        self.texture: np.ndarray | None = None
        self.style = -1
        self.far_edges: deque[float] = deque(maxlen=30)  # of the surface, over the picture height
        self.objects: list[Detection] = []
        self.hands: list[Hand] = []
        self.mask: Mask | None = None
        self.frame_size = np.array((640.0, 480.0))

    def start(self) -> None:
        self.restyle()

    def restyle(self) -> None:
        """Paint the fabric in the next style."""
        self.style = (self.style + 1) % len(STYLES)
        self.request("style", style=STYLES[self.style], picture=self.swatch)

    def script(self) -> Iterator[float]:
        while True:
            yield 2.0
            self.restyle()

    def on_result(self, dnn, result, frame) -> None:
        self.frame_size = np.array(frame.image.shape[1::-1], float)
        if dnn == "detect":
            self.objects = result
            self.stand_on_surface()
        elif dnn == "segment":
            self.mask = result
        elif dnn == "hand":
            self.hands = result
            self.follow_pinch()
        elif dnn == "style":
            self.texture = result.image

    def stand_on_surface(self) -> None:
        """Until somebody moves it, the couch stands on the table or bed that fills the view.

        What lies on a table lifts the top edge of its box, so the lowest of late counts.
        """
        width, height = self.frame_size
        for found in self.objects:
            left, top, right, bottom = found.box
            if found.label in SURFACES and right - left > 0.8 * width and bottom > 0.9 * height:
                self.far_edges.append(top / height)
        if self.far_edges and not self.placed_by_hand:
            far_edge = np.clip(max(self.far_edges), 0.35, 0.6)
            self.place[1] += 0.2 * (far_edge + 0.65 * (1 - far_edge) - self.place[1])

    def follow_pinch(self) -> None:
        """A pinch on the couch grabs it; it goes with the hand until the fingers open."""
        grips = [h.points[[4, 8], :2].mean(axis=0) for h in self.hands if h.pinch < PINCH]
        middle = self.place * self.frame_size - (0, 0.2 * self.scale * self.frame_size[0])
        reach = 0.5 * self.scale * self.frame_size[0]
        near = [grip for grip in grips if self.grabbed or np.linalg.norm(grip - middle) < reach]
        self.grabbed = bool(near)
        if near:
            self.placed_by_hand = True
            self.place = np.clip(near[0] / self.frame_size, 0.05, 0.98)

    def draw(self, scene: Scene) -> None:
        x, y = self.place * self.frame_size
        width = self.scale * self.frame_size[0]
        scene.mesh("couch", at=(x, y), width=width, yaw=self.yaw, texture=self.texture)
        if self.mask is not None:
            scene.occlude(self.mask)
        scene.boxes([found for found in self.objects if found.label in FURNITURE])
        scene.hands(self.hands)

    def on_key(self, key: Key) -> None:
        if not key.pressed:
            return
        if key.name == "s":
            self.restyle()
        elif key.name in ("left", "right"):
            self.yaw += 15 if key.name == "right" else -15
        elif key.name in ("up", "down"):
            self.scale *= 1.1 if key.name == "up" else 1 / 1.1

    def on_pointer(self, pointer: Pointer, scene: Scene) -> None:
        if pointer.buttons:
            self.placed_by_hand = True
            self.place = np.array(scene.to_picture(pointer.x, pointer.y)) / self.frame_size

    def on_scroll(self, scroll: Scroll) -> None:
        self.yaw += 5 * scroll.dy
