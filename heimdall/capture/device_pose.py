"""What a device that tracks itself, as by ARKit or ARCore, says of one picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from heimdall.capture.pose import Pose
from heimdall.errors import ConfigError

Kind = Literal["horizontal", "vertical", "unknown"]
KINDS = get_args(Kind)
MOST_PLANES = 64
_SHORT = 1e-6  # of a direction
_SQUARE = 1e-3  # that a rotation's columns may be off, as those of float32 are


@dataclass(frozen=True, eq=False)
class DevicePlane:
    """A plane that the device has found. ``id``: its own for ever; ``pose``: from its axes to the
    device's, y its normal; ``outline`` (k, 2): its corners along x and z, metres; ``kind``: one of
    KINDS. Raises ConfigError for what is none."""

    id: int
    pose: Pose
    outline: np.ndarray | Sequence[Sequence[float]]
    kind: Kind = "unknown"

    def __post_init__(self) -> None:
        object.__setattr__(self, "pose", _rigid(self.pose))
        outline = _numbers(self.outline)
        if outline is None or outline.ndim != 2 or outline.shape[1] != 2 or len(outline) < 3:
            raise ConfigError("a device's plane: outline must be three or more corners (x, z)")
        if not isinstance(self.id, int) or self.kind not in KINDS:
            raise ConfigError(f"a device's plane {self.id!r}: give a number, and one of {KINDS}")
        object.__setattr__(self, "outline", outline)


@dataclass(frozen=True, eq=False)
class DeviceLight:
    """The light that the device stands in. ``towards``: the main light, in the device's axes, of
    any length; ``main``, ``around``: what falls from it on what faces it, and from all else on
    what faces up, linear RGB, of which 1 makes white things look white. Raises ConfigError for
    what is none."""

    towards: np.ndarray | Sequence[float]
    main: np.ndarray | Sequence[float]
    around: np.ndarray | Sequence[float]

    def __post_init__(self) -> None:
        for name in ("towards", "main", "around"):
            found = _numbers(getattr(self, name))
            if found is None or found.shape != (3,):
                raise ConfigError(f"a device's light: {name} must be three finite numbers")
            object.__setattr__(self, name, found)
        length = float(np.linalg.norm(self.towards))
        if length < _SHORT or min(*self.main, *self.around) < 0:
            raise ConfigError("a device's light: give a direction, and colours of 0 or more")
        object.__setattr__(self, "towards", np.asarray(self.towards) / length)


@dataclass(frozen=True, eq=False)
class DevicePose:
    """``pose``: from the device's axes (metres, y up) to the camera (x right, y down, z into the
    picture); None: it is lost. ``planes``: all that it has found. ``light``: where it says. Raises
    ConfigError for what is none."""

    pose: Pose | None
    planes: Sequence[DevicePlane] = ()
    light: DeviceLight | None = None

    def __post_init__(self) -> None:
        if self.pose is not None:
            object.__setattr__(self, "pose", _rigid(self.pose))
        if len(self.planes) > MOST_PLANES:
            raise ConfigError(f"a device's pose: {len(self.planes)} planes, at most {MOST_PLANES}")
        object.__setattr__(self, "planes", tuple(self.planes))


def _numbers(given: object) -> np.ndarray | None:
    """Finite numbers, of one's own; None for others."""
    try:
        found = np.array(given, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if np.isfinite(found).all() else None


def _rigid(pose: Pose) -> Pose:
    """It, with a rotation that is exactly one."""
    turned, moved = _numbers(pose.rotation), _numbers(pose.translation)
    if turned is None or moved is None or turned.shape != (3, 3) or moved.shape != (3,):
        raise ConfigError("a device's pose: give a rotation (3, 3) and a translation (3,), finite")
    if np.abs(turned @ turned.T - np.eye(3)).max() > _SQUARE or np.linalg.det(turned) < 0:
        raise ConfigError("a device's pose: its rotation is none")
    u, _, v = np.linalg.svd(turned)
    return Pose(u @ v, moved)
