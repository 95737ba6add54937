"""What the shop sells, and a piece that stands in the user's room.

Sizes are those of the models, in metres, so that a table, a floor or another piece tells how large
each would be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heimdall import Anchor, App, Scene, World
from heimdall.capture.pose import Pose
from heimdall.render.content.placing import about_y
from heimdall.tracking.world import WorldAnchor

from .pages import card

FABRICS = (("Harbour", 0), ("Midnight", 7), ("Meadow", 12), ("Dune", 19))  # styles of the network

WIDTH, SCALES = 0.42, (0.15, 0.9)  # of the couch over the picture's: at first, and limits
MODEL, FLOOR_M = 1 / 10, 0.9  # scale on a table; the camera is higher above a floor
FLAT = 0.45  # of depth in a picture without a world: as looked at from above by about 24 degrees


@dataclass(frozen=True)
class Article:
    """``size``: width, height, depth in metres; ``prices``: one, or one for each fabric;
    ``beside``: where it comes to stand, metres to the couch's right, and before it."""

    file: str
    name: str
    about: str
    size: tuple[float, float, float]
    prices: tuple[int, ...]
    beside: tuple[float, float] = (0.0, 0.0)

    @property
    def upholstered(self) -> bool:
        """True if the piece comes in several fabrics."""
        return len(self.prices) > 1

    def cards(self) -> list[np.ndarray]:
        """Its card in each fabric, RGBA: name, size and price; one card if it has none."""
        wide, high, deep = (round(100 * side) for side in self.size)
        size = f"{self.about}, {wide} x {deep} x {high} cm"
        fabrics = (
            [[size, f"Fabric: {name}"] for name, _ in FABRICS] if self.upholstered else [[size]]
        )
        return [
            card(self.name, lines, f"€ {price}")
            for lines, price in zip(fabrics, self.prices, strict=True)
        ]


CATALOGUE = (
    Article("couch.glb", "Hygge sofa", "3 seats", (2.116, 0.867, 0.947), (899, 949, 929, 979)),
    Article("chair.glb", "Fika chair", "Oak", (0.45, 0.844, 0.491), (149,) * 4, (1.5, 0.5)),
    Article("side-table.glb", "Side table", "Walnut", (0.46, 0.5, 0.46), (119,), (-1.45, 0.35)),
    Article("lamp.glb", "Floor lamp", "Brass", (0.41, 1.5, 0.41), (189,), (-1.4, -0.3)),
    Article("shelf.glb", "Shelf", "Oak", (0.8, 1.8, 0.28), (329,), (1.65, -0.4)),
)


@dataclass(eq=False)
class Standing:
    """A piece in the room: ``stood`` is its place in the world, once that has been seen; ``pin``
    the one in the picture; before it has either, it is at ``place``, shares of the picture."""

    article: Article
    place: np.ndarray
    yaw: float = -20.0
    stood: WorldAnchor | None = None
    pin: Anchor | None = None

    @property
    def placed(self) -> bool:
        """True if the piece was put somewhere."""
        return self.stood is not None or self.pin is not None


class Room:
    """The pieces that stand in the picture of an app, and where: in its world, metres, where that
    has been seen, else in the picture plane. ``scale``: the couch's width over the picture's; of
    models on a table, as that to ``WIDTH``."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.chosen = Standing(CATALOGUE[0], place=np.array((0.46, 0.80)))
        self.pieces = [self.chosen]
        self._unloaded = list(CATALOGUE[1:])
        self.scale = WIDTH
        self.true_size: bool | None = None  # until it is known what they stand on
        self.frame_size = np.array((640.0, 480.0))

    @property
    def world(self) -> World:
        assert self._app.world is not None
        return self._app.world

    def tracking(self, state: str) -> None:
        """The world has come into view: furniture stands on it, from now on. When it is lost,
        pieces stand where they were in the picture."""
        if self.world.camera is not None:
            self.frame_size = np.array(self.world.camera.size, float)
        for piece in self.pieces:
            if state == "lost" or piece.stood is None:
                self.stand(piece, np.clip(self.at(piece), 0, self.frame_size))

    def stand(self, piece: Standing, point: np.ndarray) -> None:
        """Stand a piece on a point of the picture, and keep it there in the world."""
        piece.place = np.clip(point / self.frame_size, 0.05, 0.98)
        x, y = piece.place * self.frame_size
        anchor = self._app.anchor((float(x), float(y)))
        if not isinstance(anchor, WorldAnchor):
            piece.pin = anchor
            return
        piece.stood = anchor
        if self.true_size is None and self.world.pose is not None:
            above = anchor.pose.inverse.to_camera(self.world.pose.position)
            self.true_size = bool(above[1] > FLOOR_M)

    def in_world(self, piece: Standing) -> bool:
        """True if the piece is drawn at its place in the world: not when that has faded."""
        return piece.stood is not None and self.world.fade > 0

    def at(self, piece: Standing) -> np.ndarray:
        """Where it stands in the picture being drawn."""
        anchor = piece.stood if self.in_world(piece) else piece.pin
        return np.array(anchor.at) if anchor else piece.place * self.frame_size

    def factor(self) -> float:
        """The scale of what stands in the world, to its true size."""
        return 1.0 if self.true_size else MODEL * self.scale / WIDTH

    def metre(self, piece: Standing) -> float:
        """How many pixels of the picture a metre of a piece takes."""
        camera, stood = self.world.camera, piece.stood if self.in_world(piece) else None
        if stood is None or camera is None or camera.pose is None:
            return self.scale * float(self.frame_size[0]) / CATALOGUE[0].size[0]
        away = float(camera.pose.to_camera(stood.pose.translation)[2])
        return self.factor() * camera.fx / max(away, 0.05)

    def under(self, point: np.ndarray) -> Standing | None:
        """The piece that a point of the picture is on, or near."""

        def away(piece: Standing) -> float:
            wide, high, _ = np.multiply(piece.article.size, self.metre(piece))
            middle = self.at(piece) - (0, high / 2)
            return float(np.linalg.norm(point - middle)) / (max(wide, high) / 2)

        nearest = min(self.pieces, key=away)
        return nearest if away(nearest) < 1 else None

    def put(self, point: np.ndarray) -> None:
        """The user moves the chosen piece there, if there is something to stand on."""
        if not self.world.tracked or self.world.hit(*point) is not None:
            self.chosen.stood = None
            self.stand(self.chosen, point)

    def resize(self, ratio: float) -> None:
        """Make all larger or smaller; what has its true size keeps that."""
        if not (self.true_size and self.in_world(self.chosen)):
            before, self.scale = self.scale, float(np.clip(self.scale * ratio, *SCALES))
            self._spread(self.scale / before)

    def turn(self, degrees: float) -> None:
        """Turn the chosen piece."""
        self.chosen.yaw += degrees

    def toggle(self) -> None:
        """True size instead of models, or the other way round."""
        before = self.factor()
        self.true_size = not self.true_size
        self._spread(self.factor() / before)

    def _spread(self, ratio: float) -> None:
        """What stands in the world has grown: move it as far away from the first piece."""
        first = self.pieces[0].stood
        for piece in self.pieces[1:]:
            if first is not None and piece.stood is not None:
                away = piece.stood.pose.translation - first.pose.translation
                where = first.pose.translation + ratio * away
                piece.stood = self.world.anchor(Pose(piece.stood.pose.rotation, where))

    def bring(self) -> None:
        """Choose the next piece, which comes to stand beside the first, turned as that is."""
        article = CATALOGUE[(CATALOGUE.index(self.chosen.article) + 1) % len(CATALOGUE)]
        there = [piece for piece in self.pieces if piece.article is article]
        if there:
            self.chosen = there[0]
            return
        first = self.pieces[0]
        self.chosen = piece = Standing(article, first.place, first.yaw)
        right, front = np.subtract(article.beside, first.article.beside)
        away = about_y(first.yaw) @ (right, 0.0, front)
        if first.stood is not None and self.in_world(first):
            where = first.stood.pose.to_camera(self.factor() * away)  # its axes to the world's
            piece.stood = self.world.anchor(Pose(first.stood.pose.rotation, where))
        else:
            seen = self.at(first) + self.metre(first) * away[[0, 2]] * (1, FLAT)
            self.stand(piece, np.clip(seen, 0, self.frame_size))
        self.pieces.append(piece)

    def take_away(self) -> None:
        """The chosen piece goes, unless it is the last."""
        if len(self.pieces) > 1:
            self.pieces.remove(self.chosen)
            self.chosen = self.pieces[-1]

    def draw(self, scene: Scene, fabric: np.ndarray | None) -> None:
        """All pieces; what is upholstered in ``fabric``, RGB, where there is one."""
        for piece in self.pieces:
            article, at = piece.article, self.at(piece)
            cloth = {"fabric": fabric} if article.upholstered and fabric is not None else None
            if self.in_world(piece):
                scale = self.factor()
                scene.model(article.file, at=piece.stood, scale=scale, yaw=piece.yaw, texture=cloth)
            else:
                width = article.size[0] * self.metre(piece)
                scene.model(article.file, at=at, width=width, yaw=piece.yaw, texture=cloth)
        for article in tuple(self._unloaded):  # they will be asked for
            if scene.model(article.file, at=(0, 0), width=1, fade=0) is not None:
                self._unloaded.remove(article)
