"""What the shop sells, and a piece that stands in somebody's room.

Sizes are those of the models, in metres, so that a table, a floor or another piece tells how large
each would be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heimdall import Anchor

from .pages import card

FABRICS = (("Harbour", 0), ("Midnight", 7), ("Meadow", 12), ("Dune", 19))  # styles of the network


@dataclass(frozen=True)
class Article:
    """``size``: width, height, depth in metres; ``prices``: one, or one for each fabric;
    ``beside``: where it comes to stand, metres to the right of the first piece and nearer."""

    file: str
    name: str
    about: str
    size: tuple[float, float, float]
    prices: tuple[int, ...]
    beside: tuple[float, float] = (0.0, 0.0)

    @property
    def upholstered(self) -> bool:
        """Whether it comes in several fabrics."""
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
    Article("chair.glb", "Fika chair", "Oak", (0.45, 0.844, 0.491), (149, 159, 149, 165), (1.5, 0)),
    Article("side-table.glb", "Side table", "Walnut", (0.46, 0.5, 0.46), (119,), (0.2, 0.75)),
    Article("lamp.glb", "Floor lamp", "Brass", (0.41, 1.5, 0.41), (189,), (-1.35, -0.1)),
    Article("shelf.glb", "Shelf", "Oak", (0.8, 1.8, 0.28), (329,), (1.7, -0.6)),
)


@dataclass(eq=False)
class Standing:
    """A piece in the room: ``stood`` is its place in the world, once that has been seen; ``pin``
    the one in the picture; before it has either, it is at ``place``, shares of the picture."""

    article: Article
    place: np.ndarray
    yaw: float = -20.0
    stood: Anchor | None = None
    pin: Anchor | None = None

    @property
    def placed(self) -> bool:
        """Whether it has been put somewhere."""
        return self.stood is not None or self.pin is not None
