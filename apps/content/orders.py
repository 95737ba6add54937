"""What the shopping app does at a key, or at a word: the one table of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from .furniture import FABRICS, Room

TURN, GROW = 15, 1.1  # degrees, and the ratio of one order
# What one would call the fabrics: their strongest colour, and of Meadow, which is pale, its name's.
COLOURS = ("yellow", "red", "green", "blue")


class Shop(Protocol):
    """Who is given orders."""

    room: Room
    wanted: int

    def restyle(self, fabric: int) -> None: ...


@dataclass(frozen=True)
class Order:
    """``word``: of those that the network of keywords knows, or none ("")."""

    key: str
    word: str
    says: str  # in the list of keys
    do: Callable[[Shop], None]


def _orders() -> Iterator[Order]:
    yield Order("n", "next", "next piece", lambda app: app.room.bring())
    yield Order("x", "away", "take it away", lambda app: app.room.take_away())
    yield Order("t", "", "true size, or a model", lambda app: app.room.toggle())
    yield Order("s", "", "next fabric", lambda app: app.restyle(app.wanted + 1))
    for number, ((name, _), colour) in enumerate(zip(FABRICS, COLOURS, strict=True)):
        yield Order(str(number + 1), colour, f"fabric {name}", partial(_restyle, fabric=number))
    yield Order("left", "left", "turn", lambda app: app.room.turn(-TURN))
    yield Order("right", "right", "turn", lambda app: app.room.turn(TURN))
    yield Order("up", "bigger", "larger", lambda app: app.room.resize(GROW))
    yield Order("down", "smaller", "smaller", lambda app: app.room.resize(1 / GROW))


def _restyle(app: Shop, fabric: int) -> None:
    app.restyle(fabric)


ORDERS = tuple(_orders())
BY_KEY = {each.key: each for each in ORDERS}
BY_WORD = {each.word: each for each in ORDERS if each.word}
