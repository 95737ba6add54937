"""Immersive online shopping: furnish your room, and restyle the couch by hand.

The first scenario of the Heimdall paper (section 2.1): detection finds where the couch may stand,
segmentation keeps people in front of it, and the style network paints its fabric. A pinch drags a
piece, two pinches turn and scale it; so do the mouse's left and right button and its wheel. Keys: N
brings the next piece, X takes one away, S or 1-4 choose the fabric, arrows turn and scale.

With the page of assets/media/page.png on the floor or a table, furniture stands there in metres,
and one can walk around it. On a floor, which is when the camera is 90 cm above it or higher, it has
its true size. On a table that would fill the view, so there it is a model, 1:10 at first; T changes
between the two. Without the page nobody knows how large anything is: pieces stand in the picture,
as large beside one another as they are, and the couch as wide as suits the view.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from heimdall import DNN, App, Detection, Hand, Key, Marker, Pointer, Scene, Scroll, World
from heimdall.render.mesh import weave

from .content.furniture import CATALOGUE, FABRICS, Standing

SURFACES = ("dining table", "bed")
FURNITURE = ("couch", "chair", "potted plant", "tv", "refrigerator")
PINCH = 0.35
WIDTH, SCALES = 0.42, (0.15, 0.9)  # of the couch over the picture's: at first, and limits
MODEL, FLOOR_M = 1 / 10, 0.9  # scale on a table; the camera is higher above a floor
COUCH_M = CATALOGUE[0].size[0]


class Shopping(App):
    """Furnish your room with virtual pieces, and restyle them by hand."""

    title = "Online shopping"
    fps = 30
    scheduler = "max-total"
    clip = "box.mp4"
    world = World(Marker("DICT_4X4_50", 7, width_m=0.08))
    keys: ClassVar = {
        "n": "next piece",
        "x": "take it away",
        "t": "true size, or a model",
        "s": "next fabric",
        **{str(number): f"fabric {name}" for number, (name, _) in enumerate(FABRICS, 1)},
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
        self.chosen = Standing(CATALOGUE[0], place=np.array((0.46, 0.80)))
        self.pieces = [self.chosen]
        self.unloaded = list(CATALOGUE[1:])
        self.scale = WIDTH  # the couch's width over the picture's; of models, as that to WIDTH
        self.true_size: bool | None = None  # until it is known what they stand on
        self.grips = np.empty((0, 2))  # where fingers hold it
        self.hold = np.zeros(2)  # from there to where it stands
        self.swatch = np.ascontiguousarray(weave()[..., ::-1])  # BGR, as pictures come in
        self.cards = {article: article.cards() for article in CATALOGUE}
        self.texture: np.ndarray | None = None
        self.wanted = self.shown = 0  # fabrics: asked for; painted
        self.far_edges: deque[float] = deque(maxlen=30)  # of the surface, over the picture height
        self.frame_size = np.array((640.0, 480.0))
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
        first = self.pieces[0]
        if self.far_edges and not first.placed:
            far_edge = np.clip(max(self.far_edges), 0.35, 0.6)
            first.place[1] += 0.2 * (far_edge + 0.65 * (1 - far_edge) - first.place[1])

    def on_tracking(self, state: str) -> None:
        """The page has come into view: furniture stands on what it lies on, from now on. When it
        is lost, pieces stand where they were in the picture."""
        self.frame_size = np.array(self.world.camera.size, float)
        for piece in self.pieces:
            if state == "lost" or piece.stood is None:
                self.stand(piece, np.clip(self.at(piece), 0, self.frame_size))

    def stand(self, piece: Standing, point: np.ndarray) -> None:
        """Stand a piece on a point of the picture, and keep it there in the world."""
        piece.place = np.clip(point / self.frame_size, 0.05, 0.98)
        x, y = piece.place * self.frame_size
        anchor = self.anchor((float(x), float(y)))
        if anchor.pose is None:
            piece.pin = anchor
            return
        piece.stood = anchor
        if self.true_size is None:
            above = anchor.pose.inverse.to_camera(self.world.pose.position)
            self.true_size = bool(above[1] > FLOOR_M)

    def in_world(self, piece: Standing) -> bool:
        """Whether it is drawn at its place in the world: not when that has faded."""
        return piece.stood is not None and self.world.fade > 0

    def at(self, piece: Standing) -> np.ndarray:
        """Where it stands in the picture being drawn."""
        anchor = piece.stood if self.in_world(piece) else piece.pin
        return np.array(anchor.at) if anchor else piece.place * self.frame_size

    def factor(self) -> float:
        """Of what stands in the world, to its true size."""
        return 1.0 if self.true_size else MODEL * self.scale / WIDTH

    def metre(self, piece: Standing) -> float:
        """How many pixels of the picture a metre of a piece takes."""
        if not self.in_world(piece):
            return self.scale * self.frame_size[0] / COUCH_M
        camera = self.world.camera
        away = camera.pose.to_camera(piece.stood.pose.translation)[2]
        return self.factor() * camera.fx / max(away, 0.05)

    def under(self, point: np.ndarray) -> Standing | None:
        """The piece that a point of the picture is on, or near."""

        def away(piece: Standing) -> float:
            wide, high, _ = np.multiply(piece.article.size, self.metre(piece))
            middle = self.at(piece) - (0, high / 2)
            return float(np.linalg.norm(point - middle)) / (max(wide, high) / 2)

        nearest = min(self.pieces, key=away)
        return nearest if away(nearest) < 1 else None

    def follow_pinch(self, hands: list[Hand]) -> None:
        """A pinch on a piece grabs it; it goes with the hand until the fingers open. A second
        pinch anywhere turns and scales it, as two fingers do with a picture."""
        grips = np.array([h.points[[4, 8], :2].mean(axis=0) for h in hands if h.pinch < PINCH])
        if len(grips) and not len(self.grips):
            held = [piece for grip in grips if (piece := self.under(grip))]
            self.chosen, grips = (held[0], grips) if held else (self.chosen, grips[:0])
        if len(grips) == len(self.grips) == 2:
            before, now = np.diff(self.grips, axis=0)[0], np.diff(grips, axis=0)[0]
            self.resize(float(np.linalg.norm(now) / max(np.linalg.norm(before), 1.0)))
            turned = np.arctan2(now[1], now[0]) - np.arctan2(before[1], before[0])
            self.chosen.yaw -= np.degrees((turned + np.pi) % (2 * np.pi) - np.pi)
        elif len(grips):
            self.hold = self.hold if len(self.grips) else self.at(self.chosen) - grips[0]
            self.put(grips[0] + self.hold)
        self.grips = grips

    def put(self, point: np.ndarray) -> None:
        """Somebody moves the chosen piece there, if there is something to stand on."""
        if not self.world.tracked or self.world.hit(*point) is not None:
            self.chosen.stood = None
            self.stand(self.chosen, point)

    def resize(self, factor: float) -> None:
        """Make all larger or smaller; what has its true size keeps that."""
        if not (self.true_size and self.in_world(self.chosen)):
            self.scale = float(np.clip(self.scale * factor, *SCALES))

    def bring(self) -> None:
        """Choose the next piece, which comes to stand beside the first."""
        article = CATALOGUE[(CATALOGUE.index(self.chosen.article) + 1) % len(CATALOGUE)]
        there = [piece for piece in self.pieces if piece.article is article]
        self.chosen = there[0] if there else Standing(article, self.chosen.place)
        if not there:
            first = self.pieces[0]
            beside = np.subtract(article.beside, first.article.beside) * self.metre(first)
            self.stand(self.chosen, np.clip(self.at(first) + beside, 0, self.frame_size))
            self.pieces.append(self.chosen)

    def take_away(self) -> None:
        """The chosen piece goes, unless it is the last."""
        if len(self.pieces) > 1:
            self.pieces.remove(self.chosen)
            self.chosen = self.pieces[-1]

    def draw(self, scene: Scene) -> None:
        for piece in self.pieces:
            self.draw_piece(scene, piece)
        self.unloaded = [  # they will be asked for: loaded before the first frame
            each
            for each in self.unloaded
            if scene.model(each.file, at=(0, 0), width=9, fade=0) is None
        ]
        mask = self.tracked("segment")
        if mask is not None:
            scene.occlude(mask)
        objects = self.tracked("detect") or []
        scene.boxes([found for found in objects if found.label in FURNITURE])
        scene.hands(self.tracked("hand") or [])
        self.draw_card(scene)

    def draw_piece(self, scene: Scene, piece: Standing) -> None:
        article, cloth = piece.article, None
        if article.upholstered and self.texture is not None:
            cloth = {"fabric": self.texture}
        if self.in_world(piece):
            scale = self.factor()
            scene.model(article.file, at=piece.stood, scale=scale, yaw=piece.yaw, texture=cloth)
        else:
            at, width = tuple(self.at(piece)), article.size[0] * self.metre(piece)
            scene.model(article.file, at=at, width=width, yaw=piece.yaw, texture=cloth)

    def draw_card(self, scene: Scene) -> None:
        """The chosen piece's name, size and price, beside it, inside the picture."""
        piece = self.chosen
        wide, high, _ = np.multiply(piece.article.size, self.metre(piece))
        label = self.cards[piece.article][self.shown if piece.article.upholstered else 0]
        size = 0.26 * self.frame_size[0] * np.array((1, label.shape[0] / label.shape[1]))
        corner = self.at(piece) + (0.5 * wide, -0.25 * wide - 0.65 * high)
        corner = np.clip(corner, 8, self.frame_size - size - 8)
        scene.picture(label, corner + np.array([(0, 0), (1, 0), (1, 1), (0, 1)]) * size)
        if self.in_world(piece):
            shown = "true size" if self.true_size else f"1:{1 / self.factor():.0f}"
            scene.text(shown, at=(corner[0], corner[1] - 0.04 * self.frame_size[1]))

    def on_key(self, key: Key) -> None:
        if not key.pressed:
            return
        if key.name == "s":
            self.restyle(self.wanted + 1)
        elif key.name == "n":
            self.bring()
        elif key.name == "x":
            self.take_away()
        elif key.name == "t":
            self.true_size = not self.true_size
        elif key.name.isdigit() and 1 <= int(key.name) <= len(FABRICS):
            self.restyle(int(key.name) - 1)
        elif key.name in ("left", "right"):
            self.chosen.yaw += 15 if key.name == "right" else -15
        elif key.name in ("up", "down"):
            self.resize(1.1 if key.name == "up" else 1 / 1.1)

    def on_pointer(self, pointer: Pointer, scene: Scene) -> None:
        here = np.array(scene.to_picture(pointer.x, pointer.y))
        pressed = "left" in pointer.buttons
        if pressed and not self.pressed:
            self.chosen = self.under(here) or self.chosen
        self.pressed = pressed
        if pressed:
            self.put(here)
        elif "right" in pointer.buttons:
            across, down = (here - self.pointer) / self.frame_size
            self.chosen.yaw += 180 * across
            self.resize(float(np.exp(-2 * down)))
        self.pointer = here

    def on_scroll(self, scroll: Scroll) -> None:
        self.resize(1.06**scroll.dy)
