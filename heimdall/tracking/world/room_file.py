"""A room's map in a file, with how its axes and unit are the world's: what stood somewhere stands
there in the next run."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from heimdall.errors import ConfigError
from heimdall.tracking.pose.views import keep, kept
from heimdall.tracking.slam.model import Map
from heimdall.tracking.slam.stored import map_of, parts_of, turning
from heimdall.tracking.world.setting import SOURCES, Setting

LEAST_KEYFRAMES = 2


@dataclass(frozen=True, eq=False)
class RoomMap:
    """A ``map``, and its ``setting`` in the world."""

    map: Map
    setting: Setting


def save(path: Path, room: RoomMap, before: RoomMap | None) -> None:
    """Keep it. Where ``before``, which was there, is another one, that is kept beside it. Raises
    ConfigError where it cannot be written."""
    if len(room.map.keyframes) < LEAST_KEYFRAMES:
        return
    now = room.setting
    on = -1 if now.on is None else now.on.id
    parts = {
        "setting": np.column_stack([now.turn, now.move]),
        "metres": np.array(now.metres),
        "on": np.array(on),
        "source": np.array(SOURCES.index(now.source)),
        **parts_of(room.map),
    }
    if before is not None and before.map is not room.map:
        with contextlib.suppress(OSError):
            os.replace(path, path.with_suffix(".before" + path.suffix))
    keep(path, parts)


def load(path: Path) -> RoomMap:
    """What ``save`` kept. Raises ConfigError for a file that is damaged, or no room."""
    with kept(path) as file:
        known = map_of(lambda name: file[name] if name in file.files else None)
        axes, metres = np.asarray(file["setting"], np.float64), float(file["metres"])
        if axes.shape != (3, 4) or not np.isfinite(axes).all() or not 0 < metres < 1e12:
            raise ValueError("its axes are none")
        turning("setting", axes[:, :3])
        number = int(file["on"])
        on = next((each for each in known.planes.planes if each.id == number), None)
        source = int(file["source"])
        if not 0 <= source < len(SOURCES):
            raise ValueError("nothing says its metres")
        setting = Setting(metres, axes[:, :3].copy(), axes[:, 3].copy(), on, SOURCES[source])
        return RoomMap(known, setting)
    raise ConfigError(f"map {path} cannot be read")  # never: kept() tells all errors
