"""What stands in the picture: 3-D models, which are loaded here, and planes that hide them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from heimdall.capture.lens import Camera
from heimdall.errors import AppError, unknown
from heimdall.render.content import placing
from heimdall.render.content.figure import Figure, Hider, hider
from heimdall.render.content.figures import Figures
from heimdall.render.content.light import Light
from heimdall.render.content.model import Model
from heimdall.render.content.motion import Animation
from heimdall.render.content.sending import Sent
from heimdall.render.content.stock import Stock
from heimdall.render.layout import Letterbox
from heimdall.render.programs import Programs
from heimdall.render.surface import Surface

_LOOK = 6  # every so many pictures the light is looked at
_PLANE = (6.0, 6.0)  # metres of a plane without a size


class Solids:
    """Makes solids for ``figures`` to draw, and loads the models among them and their light. Main
    thread only."""

    def __init__(self, surface: Surface, programs: Programs, figures: Figures):
        self._surface, self._programs, self._figures = surface, programs, figures
        self._stock: Stock | None = None  # once there is a model
        self.environment: str | Path | None = None
        self._pictures = 0
        self._began_s = time.perf_counter()
        self.estimates = True

    def figure(
        self,
        file: str | Path,
        at: object,
        camera: Camera | None,
        box: Letterbox,
        *,
        scale: float,
        yaw: float,
        lift: float,
        width: float | None,
        ground: bool,
        animation: str | int | None,
        time_s: float | None,
        fade: float,
        texture: np.ndarray | Mapping[str, np.ndarray] | None,
    ) -> tuple[Model | None, Figure | None]:
        """A model, once it is loaded, and as it is to be drawn, if it can be seen."""
        numbers = (scale, yaw, lift, fade, *([] if width is None else [width]))
        if not np.isfinite(numbers).all() or scale <= 0 or (width is not None and width <= 0):
            raise AppError(
                f"model {file} with scale {scale}, yaw {yaw}, lift {lift}, width {width}, fade "
                f"{fade}: give finite numbers, scale and width above 0"
            )
        flat = isinstance(at, tuple | list | np.ndarray)
        point, pixels = _point(at, width, file) if flat else ((0.0, 0.0), 0.0)
        sent, lit = self._opened().model(file), self._lit()
        if sent is None or not lit:
            return (sent.model if sent else None), None
        model = sent.model
        if flat:
            camera, place = placing.in_picture(model, point, pixels, box.picture)
        else:
            place = placing.pose_of(at)
        if camera is None or camera.pose is None or fade <= 0:
            return model, None
        chosen, moment = _animation(model, animation), ("", 0.0)
        if chosen is not None:
            when = time.perf_counter() - self._began_s if time_s is None else time_s
            when = when % chosen.seconds if chosen.seconds > 0 else 0.0
            moment = (chosen.name, when)
        cloths = (
            texture if isinstance(texture, Mapping) else {} if texture is None else {"": texture}
        )
        names = [material.name for material in model.materials]
        for name in cloths:
            if name and name not in names:
                raise AppError(f"model {file}: {unknown('material', name, names)}")
        where = placing.stand(model, place, camera, scale=scale, yaw=yaw, lift=lift, ground=ground)
        stance = model.skeleton.stance(chosen, moment[1])
        return model, Figure(sent, where, stance, min(fade, 1.0), cloths, moment)

    def hider(self, plane: object, camera: Camera | None) -> Hider | None:
        """A plane as something that hides; None while the camera's pose is unknown."""
        place = placing.pose_of(plane)
        if camera is None or camera.pose is None:
            return None
        size = getattr(plane, "size", None) or _PLANE
        return hider(place, (float(size[0]), float(size[1])), camera)

    def stand_in(self, environment: str | Path | None) -> None:
        """Models are lit by this file's environment map from now on, once it is loaded."""
        self.environment = environment
        if environment is not None:
            self._opened().room(environment)

    def see(self, picture: np.ndarray) -> None:
        """A new camera picture, BGR: it tells of the light, and there is time to load something."""
        if self._stock is None:
            return
        self._stock.advance()
        self._pictures += 1
        light = self._figures.light
        if light is not None and self.estimates and self._pictures % _LOOK == 1:
            light[0].see(picture)

    def settle(self) -> bool:
        """Wait for everything that has been asked for; False if all of it was there."""
        return self._stock is not None and self._stock.settle()

    def _opened(self) -> Stock:
        if self._stock is None:
            surface = self._surface
            self._stock = Stock(
                surface.ctx, self._programs, self._rehearse, software=surface.software
            )
            self._stock.room(self.environment)  # ahead of models, which are rehearsed in it
        return self._stock

    def _rehearse(self, sent: Sent) -> Iterator[None]:
        if self._lit():
            yield from self._figures.rehearse(sent)

    def _lit(self) -> bool:
        """Whether there is light; until an environment is loaded, it is the one before."""
        found, before = self._opened().room(self.environment), self._figures.light
        if found is not None and (before is None or found[0] is not before[0].room):
            self._figures.light = Light(found[0]), found[1]
            if before is not None:
                self._figures.light[0].estimated = before[0].estimated
        return self._figures.light is not None


def _point(at: Any, width: float | None, file: str | Path) -> tuple[tuple[float, float], float]:
    if len(at) != 2 or not np.isfinite(at).all():
        raise AppError(f"model {file} at {at}: give a point of the picture, or a pose")
    if width is None:
        raise AppError(f"model {file} at a point of the picture needs its width, in pixels")
    return (float(at[0]), float(at[1])), width


def _animation(model: Model, which: str | int | None) -> Animation | None:
    if which is None:
        return None
    names = list(model.animations)
    if isinstance(which, int) and 0 <= which < len(names):
        return model.animations[names[which]]
    if isinstance(which, str) and which in model.animations:
        return model.animations[which]
    if not names:
        raise AppError(f"model {model.name} has no animation")
    raise AppError(f"model {model.name}: {unknown('animation', str(which), names)}")
