"""What an app gives a scene to draw, looked at first: a wrong thing is named, and the method that
draws it, instead of whatever error it would cause."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

from heimdall.errors import AppError
from heimdall.models.results import (
    Body,
    Body3D,
    Detection,
    FaceMesh,
    Hand,
    Label,
    Mask,
    Picture,
    TextRegion,
)

_DRAWN: dict[type, str] = {
    Mask: "draw it with scene.mask",
    Detection: "draw it with scene.boxes",
    Hand: "draw it with scene.hands",
    Body: "draw it with scene.bodies",
    Body3D: "draw it with scene.bodies",
    FaceMesh: "draw it with scene.faces",
    TextRegion: "draw its corners with scene.polygons",  # a TextLine, too
    Picture: "draw its image with scene.picture",
    Label: "write its name with scene.text",
}


def several(
    given: Any, kinds: tuple[type, ...], method: str, *, alike: bool = True
) -> tuple[Any, ...]:
    """The results in ``given``, which must be a list of one of these kinds, or of what has the same
    fields, where those who are ``alike`` will do. Raises AppError."""
    wanted = f"a list of {' or '.join(kind.__name__ for kind in kinds)}"
    items = listed(given, wanted, method)
    for item in items:
        if not (isinstance(item, kinds) or (alike and any(_like(item, kind) for kind in kinds))):
            raise refused(method, wanted, item, "a list with ")
    return items


def listed(given: Any, wanted: str, method: str) -> tuple[Any, ...]:
    """What is in a list of whatever it may be. Raises AppError."""
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise refused(method, wanted, given)
    return tuple(given)


def mask_values(mask: Any, method: str) -> np.ndarray:
    """A Mask's probabilities, (h, w). Raises AppError."""
    values = getattr(mask, "values", None)
    if not isinstance(values, np.ndarray):
        raise refused(method, "a Mask", mask)
    if values.ndim != 2 or not values.size:
        raise AppError(f"mask of shape {values.shape}: give probabilities of shape (h, w)")
    return values


def image(pixels: Any, method: str, channels: tuple[int, ...] = (3,)) -> np.ndarray:
    """An image, uint8 (h, w, channels). Raises AppError."""
    kind = "RGB" if channels == (3,) else "RGB or RGBA"
    depth = " or ".join(map(str, channels))
    wanted = f"{kind} uint8 of shape (h, w, {depth})"
    if not isinstance(pixels, np.ndarray):
        raise refused(method, f"an image, an array of {wanted}", pixels)
    fits = pixels.ndim == 3 and pixels.shape[2] in channels and pixels.dtype == np.uint8
    if not fits or not pixels.size:
        raise AppError(f"image of shape {pixels.shape}, {pixels.dtype}: give {wanted}")
    return pixels


def points(given: Any, method: str) -> np.ndarray:
    """Points of the picture, float32 (n, 2 or more). Raises AppError."""
    try:
        array = np.asarray(given, np.float32)
    except (TypeError, ValueError, OverflowError):
        raise refused(method, "points, an array of shape (n, 2)", given) from None
    if array.ndim != 2 or array.shape[1] < 2:
        raise AppError(f"points of shape {array.shape}: give (n, 2) or (n, 3)")
    return array


def place(at: Any, method: str) -> np.ndarray:
    """A point of the picture, float32 (2,). Raises AppError."""
    try:
        array = np.asarray(at, np.float32)
    except (TypeError, ValueError, OverflowError):
        array = np.zeros(0, np.float32)
    if array.shape != (2,) or not np.isfinite(array).all():
        raise refused(method, "a point of the picture, (x, y),", at)
    return array


def words(text: Any, method: str) -> str:
    """A text. Raises AppError."""
    if not isinstance(text, str):
        raise refused(method, "a str", text)
    return text


def refused(method: str, wanted: str, given: Any, before: str = "") -> AppError:
    """The error for what a method cannot draw: what it is, and which method can."""
    if given is None:
        what = "give []" if wanted.startswith("a list") else "do not call it"
        hint = f": {what} while there is no result"
        return AppError(f"scene.{method} wants {wanted} and got {before}None{hint}")
    name = type(given).__name__
    hint = next((f": {how}" for kind, how in _DRAWN.items() if isinstance(given, kind)), "")
    if hint == f": draw it with scene.{method}":  # one of what it wants several of
        hint = f": give a list, scene.{method}([...])"
    article = "an" if name[:1] in "aeiouAEIOU" else "a"
    return AppError(f"scene.{method} wants {wanted} and got {before}{article} {name}{hint}")


def _like(item: Any, kind: type) -> bool:
    """Whether an item has the fields of this kind of result."""
    needed = (f.name for f in fields(kind) if f.default is MISSING)
    return all(hasattr(item, name) for name in needed)
