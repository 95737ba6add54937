"""A room's map in a file, with how its axes and unit are the world's: what stood somewhere stands
there in the next run."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from heimdall.errors import ConfigError
from heimdall.tracking.pose.views import keep, kept, wrong_kind
from heimdall.tracking.slam.model import Map
from heimdall.tracking.slam.stored import WORDS, map_of, parts_of, turning
from heimdall.tracking.world.setting import SOURCES, Setting

log = logging.getLogger(__name__)

LEAST_KEYFRAMES = 2


@dataclass(frozen=True, eq=False)
class RoomMap:
    """A ``map``, and its ``setting`` in the world."""

    map: Map
    setting: Setting


def save(path: Path, room: RoomMap, before: RoomMap | None) -> None:
    """Keep it. Where ``before``, which was there, is another one, that stays as it is, and this one
    is kept under another name. Raises ConfigError where it cannot be written, or could not be read
    again."""
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
    try:
        map_of(parts.get)
    except Exception as error:
        raise ConfigError(
            f"map {path} is not kept: it could not be read again ({error})"
        ) from error
    if before is not None and before.map is not room.map:
        other = path.with_suffix(".other" + path.suffix)
        log.warning(
            "%s: the camera was not found in this map, which stays as it is; what was seen "
            "is kept as %s: give that as the world's map to go on with it",
            path,
            other,
        )
        path = other
    keep(path, parts)


def load(path: Path) -> RoomMap:
    """What ``save`` kept. Raises ConfigError for a file that is damaged, or no room."""
    with kept(path) as file:
        if WORDS not in file.files:
            raise wrong_kind(path, "targets", "a room")
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
