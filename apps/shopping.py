"""Immersive online shopping: furnish your room, and restyle the couch by hand.

The first scenario of the Heimdall paper (section 2.1): detection finds where the couch may stand,
segmentation keeps people in front of it, and the style network paints its fabric. A pinch drags a
piece, two pinches turn and scale it; key H lists keys and what the mouse does. Where it is given
sound (`--sound microphone`), it does what it is told: "next", "away", "bigger", "red".

Furniture stands on a table or the floor, and one can walk around it, once the camera has moved a
little sideways. How large the room is is a guess, until the page of assets/media/page.png is seen
in it. On a floor, which is when the camera is 90 cm above it or higher, pieces have their true
size. On a table that would fill the view, so there they are models, 1:10 at first; T changes
between the two. Where the room is not tracked pieces stand in the picture, as large beside one
another as they are, and the couch as wide as suits the view.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from heimdall import DNN, App, Detection, Hand, Key, Label, Marker, Pointer, Scene, Scroll, World

from .content.furniture import CATALOGUE, FABRICS, Room
from .content.orders import BY_KEY, BY_WORD, ORDERS
from .content.weave import weave

SURFACES = ("dining table", "bed")
FURNITURE = ("couch", "chair", "potted plant", "tv", "refrigerator")
PINCH = 0.35


class Shopping(App):
    """Furnish your room with virtual pieces, and restyle them by hand."""

    title = "Online shopping"
    fps = 30
    scheduler = "max-total"
    clip = "room.mp4"
    world = World(Marker("DICT_4X4_50", 7, width_m=0.08), room=True)
    keys: ClassVar = {order.key: order.says for order in ORDERS}
    gestures: ClassVar = {
        "drag, pinch": "move",
        "right drag, wheel": "resize, turn (two pinches)",
        "say, with --sound": ", ".join(BY_WORD),
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
    sound_dnns = (DNN("words", model="keywords"),)

    def __init__(self) -> None:
        super().__init__()
        self.room = Room(self)
        self.grips = np.empty((0, 2))  # where fingers hold it
        self.hold = np.zeros(2)  # from there to where it stands
        self.swatch = np.ascontiguousarray(weave()[..., ::-1])  # BGR, as pictures come in
        self.cards = {article: article.cards() for article in CATALOGUE}
        self.texture: np.ndarray | None = None
        self.wanted = self.shown = 0  # fabrics: asked for; painted
        self.far_edges: deque[float] = deque(maxlen=30)  # of the surface, over the picture height
        self.pointer = np.zeros(2)
        self.pressed = False

    def on_start(self) -> None:
        self.restyle(0)

    def demo_events(self) -> Iterator[float]:
        while True:
            yield 2.0
            self.restyle(self.wanted + 1)

    def restyle(self, fabric: int) -> None:
        """Paint what is upholstered in another fabric."""
        self.wanted = fabric % len(FABRICS)
        self.request("style", style=FABRICS[self.wanted][1], picture=self.swatch)

    def on_result(self, dnn, result, frame) -> None:
        self.room.frame_size = np.array(frame.image.shape[1::-1], float)
        if dnn == "detect":
            self.stand_on_surface(result)
        elif dnn == "hand":
            self.follow_pinch(result)
        elif dnn == "style":
            self.texture, self.shown = result.image, self.wanted
        elif dnn == "words":
            self.obey(result)

    def obey(self, words: list[Label]) -> None:
        """Do what is said, as the key would."""
        for word in words:
            if word.name in BY_WORD:
                BY_WORD[word.name].do(self)

    def stand_on_surface(self, objects: list[Detection]) -> None:
        """Until the user moves it, the couch stands on the table or bed that fills the view.

        What lies on a table lifts the top edge of its box, so the lowest of late counts.
        """
        width, height = self.room.frame_size
        for found in objects:
            left, top, right, bottom = found.box
            if found.label in SURFACES and right - left > 0.8 * width and bottom > 0.9 * height:
                self.far_edges.append(top / height)
        first = self.room.pieces[0]
        if self.far_edges and not first.placed:
            far_edge = np.clip(max(self.far_edges), 0.35, 0.6)
            first.place[1] += 0.2 * (far_edge + 0.65 * (1 - far_edge) - first.place[1])

    def on_tracking(self, state: str) -> None:
        self.room.tracking(state)

    def follow_pinch(self, hands: list[Hand]) -> None:
        """A pinch on a piece grabs it; it goes with the hand until the fingers open. A second
        pinch anywhere turns and scales it, as two fingers do with a picture."""
        grips = np.array([h.points[[4, 8], :2].mean(axis=0) for h in hands if h.pinch < PINCH])
        if len(grips) and not len(self.grips):
            held = [piece for grip in grips if (piece := self.room.under(grip))]
            self.room.chosen, grips = (held[0], grips) if held else (self.room.chosen, grips[:0])
        if len(grips) == len(self.grips) == 2:
            before, now = np.diff(self.grips, axis=0)[0], np.diff(grips, axis=0)[0]
            spans = [float(np.linalg.norm(each)) for each in (now, before)]
            self.room.resize(spans[0] / max(spans[1], 1.0))
            turned = np.arctan2(now[1], now[0]) - np.arctan2(before[1], before[0])
            self.room.chosen.yaw -= np.degrees((turned + np.pi) % (2 * np.pi) - np.pi)
        elif len(grips):
            self.hold = self.hold if len(self.grips) else self.room.at(self.room.chosen) - grips[0]
            self.room.put(grips[0] + self.hold)
        self.grips = grips

    def draw(self, scene: Scene) -> None:
        self.room.draw(scene, self.texture)
        mask = self.tracked("segment")
        if mask is not None:
            scene.occlude(mask)
        objects = self.tracked("detect") or []
        scene.boxes([found for found in objects if found.label in FURNITURE])
        scene.hands(self.tracked("hand") or [])
        self.draw_card(scene)

    def draw_card(self, scene: Scene) -> None:
        """The chosen piece's name, size and price, by it, while it is in the picture."""
        room, piece = self.room, self.room.chosen
        x, y = room.at(piece)
        across, down = room.frame_size
        if not (0 <= x < across and 0 <= y < down):
            return
        wide, high, _ = np.multiply(piece.article.size, room.metre(piece))
        label = self.cards[piece.article][self.shown if piece.article.upholstered else 0]
        size = 0.26 * across * np.array((1, label.shape[0] / label.shape[1]))
        corner = (x + 0.5 * wide, y - 0.25 * wide - 0.65 * high)
        if high > wide:  # above it: other pieces stand beside it
            corner = (x - 0.5 * size[0], y - 1.15 * high - size[1])
        corner = np.clip(corner, (8, 0.06 * down), room.frame_size - size - 8)
        scene.picture(label, corner + np.array([(0, 0), (1, 0), (1, 1), (0, 1)]) * size)
        if room.in_world(piece):
            shown = "true size" if room.true_size else f"1:{1 / room.factor():.0f}"
            scene.text(shown, at=(corner[0], corner[1] - 0.05 * down))

    def on_key(self, key: Key) -> None:
        if key.pressed and key.name in BY_KEY:
            BY_KEY[key.name].do(self)

    def on_pointer(self, pointer: Pointer, scene: Scene) -> None:
        here = np.array(scene.to_picture(pointer.x, pointer.y))
        pressed = "left" in pointer.buttons
        if pressed and not self.pressed:
            self.room.chosen = self.room.under(here) or self.room.chosen
        self.pressed = pressed
        if pressed:
            self.room.put(here)
        elif "right" in pointer.buttons:
            across, down = (here - self.pointer) / self.room.frame_size
            self.room.chosen.yaw += 180 * across
            self.room.resize(float(np.exp(-2 * down)))
        self.pointer = here

    def on_scroll(self, scroll: Scroll) -> None:
        self.room.resize(1.06**scroll.dy)
