"""A ready ``preprocess`` for your own model: the camera picture as its input tensor."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from heimdall.errors import ConfigError, ModelError, unknown
from heimdall.graph.graph import Graph, Tensor
from heimdall.models.base import Prepared
from heimdall.models.letterbox import Letterbox, letterbox

FITS = ("letterbox", "stretch")


class ImageInput:
    """``DNN(..., preprocess=ImageInput(mean=..., std=...))``.

    The picture is fitted into the model's input ("letterbox": aspect ratio kept, black below or
    beside it; "stretch": not kept), its values become ``(pixel * scale - mean) / std``, and its
    channels red, green, blue (``rgb=False``: blue, green, red). ``scale`` is 1/255 by default, and
    1 for a model whose input holds integers: these are rounded. Size, order of the axes, number
    of channels (3, or 1 for grey) and type are read from the model. The context that ``decode``
    gets is the Letterbox that leads back to frame pixels.
    """

    def __init__(
        self,
        *,
        scale: float | None = None,
        mean: float | Sequence[float] = 0.0,
        std: float | Sequence[float] = 1.0,
        rgb: bool = True,
        fit: str = "letterbox",
    ) -> None:
        if fit not in FITS:
            raise ConfigError(unknown("fit of an ImageInput", fit, FITS))
        self._mean, self._std = (np.asarray(each, np.float32) for each in (mean, std))
        for name, each in (("mean", self._mean), ("std", self._std)):
            if each.shape not in ((), (1,), (3,)):
                raise ConfigError(f"{name} of an ImageInput is one number or three, not {each}")
        if not self._std.all():
            raise ConfigError("std of an ImageInput divides: it must not be 0")
        self._scale, self._rgb, self._stretch = scale, rgb, fit == "stretch"
        self._name = ""

    def bind(self, graph: Graph) -> None:
        """Read the input of the model. Raises ModelError when it takes no single picture."""
        if len(graph.inputs) != 1:
            names = ", ".join(f"{each.name!r} {list(each.shape)}" for each in graph.inputs)
            raise ModelError(
                f"ImageInput feeds one input; {graph.name} has {len(graph.inputs)}: {names}. "
                "Write a preprocess function that returns all of them by name"
            )
        (tensor,) = graph.inputs
        channels_first = len(tensor.shape) == 4 and tensor.shape[1] in (1, 3)
        channels_last = len(tensor.shape) == 4 and tensor.shape[3] in (1, 3)
        if tensor.shape[:1] != (1,) or not (channels_first or channels_last):
            raise ModelError(
                f"ImageInput gives one picture, (1, 3, height, width) or (1, height, width, 3); "
                f"input {tensor.name!r} of {graph.name} is {list(tensor.shape)}: fix its shape "
                "with shapes={...}, or write a preprocess function"
            )
        self._first = channels_first
        sides = tensor.shape[2:] if channels_first else tensor.shape[1:3]
        self._height, self._width = sides
        self._grey = tensor.shape[1 if channels_first else 3] == 1
        self._dtype = tensor.dtype
        self._integers = np.issubdtype(tensor.dtype, np.integer)
        scale = (1 if self._integers else 1 / 255) if self._scale is None else self._scale
        self._factor = np.float32(scale)
        if self._integers:
            self._check_range(tensor, graph.name)
        self._name = tensor.name

    def _check_range(self, tensor: Tensor, model: str) -> None:
        """A picture is lost in a few integers, such as 0 and 1, and in more than the type holds."""
        ends = (np.array([[0.0], [255.0]]) * self._factor - self._mean) / self._std
        low, high = float(ends.min()), float(ends.max())
        limits = np.iinfo(tensor.dtype)
        if high - low < 16 or np.rint(low) < limits.min or np.rint(high) > limits.max:
            raise ModelError(
                f"input {tensor.name!r} of {model} holds integers ({tensor.dtype}: {limits.min} to "
                f"{limits.max}); ImageInput would give it {low:g} to {high:g}: choose scale, mean "
                "and std for that range, e.g. "
                + ("scale=1, mean=128" if limits.max < 255 else "scale=1, mean=0, std=1")
            )

    def __call__(self, image: np.ndarray) -> Prepared:
        """One BGR picture (h, w, 3) as the input tensor, and where it was put."""
        if not self._name:
            raise ModelError("this ImageInput is not bound to a model: call bind(graph) first")
        canvas, placement = self._fitted(image)
        if self._grey:
            canvas = cv2.cvtColor(canvas, cv2.COLOR_BGR2GRAY)[..., None]
        elif self._rgb:
            canvas = canvas[..., ::-1]
        tensor = (canvas * self._factor - self._mean) / self._std
        if self._integers:
            tensor = np.rint(tensor)
        if self._first:
            tensor = tensor.transpose(2, 0, 1)
        return Prepared({self._name: np.ascontiguousarray(tensor[None], self._dtype)}, placement)

    def _fitted(self, image: np.ndarray) -> tuple[np.ndarray, Letterbox]:
        if not self._stretch:
            return letterbox(image, self._width, self._height)
        placement = stretched(image.shape[:2], (self._height, self._width))
        return cv2.resize(image, (self._width, self._height)), placement


def stretched(frame: tuple[int, ...], size: tuple[int, int]) -> Letterbox:
    """Where a frame of (height, width) is when it fills an input of that ``size``."""
    across, down = size[1] / frame[1], size[0] / frame[0]
    return Letterbox(across, 0, 0, frame[1], frame[0], stretch=down / across)
