"""How large a room is, by how sensors say that the camera is accelerated.

The camera's way in the map, differentiated twice, is that in the map's units. But differences of
places are mostly noise, so the acceleration is integrated instead. Over a stretch of frames it is
the way, but for where that began, how fast, what is left of gravity, and what the sensor is always
off by: least squares finds all of these together with the unit (the linear alignment of
visual-inertial odometry: Martinelli, IJCV 106, 2014; Qin et al., T-RO 34, 2018, section V-B).
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from heimdall.capture.pose import Pose
from heimdall.tracking.world.lengths import Length

STRETCH_S = 2.5
EVERY_S = 0.5
MOST_GAP_S = 0.12  # between frames: what was between is not known
LEAST = 30  # frames
SMOOTH = np.hanning(9)[1:-1] / np.hanning(9).sum()  # frames are too few for what trembles faster
SWAYS = 9  # independent values in a stretch: integrated noise of neighbours is alike
MOST_SPREAD = 0.3  # of a look that says something
SAME_SPREAD = 0.015  # what a phone's accelerometer is off by, whatever the way


class Shaken:
    """``add`` each frame's pose and acceleration; now and then that is a look at the unit."""

    def __init__(self) -> None:
        self._frames: deque[tuple[float, Pose, np.ndarray]] = deque()
        self._next_s = -math.inf

    def add(self, at_s: float, pose: Pose, acceleration: np.ndarray) -> Length | None:
        """A frame by a camera at ``pose`` (map to camera), accelerated by so much (3,), m/s^2 in
        its axes: how long the map's unit is by the last seconds; None where they say nothing."""
        frames = self._frames
        if frames and not 0 < at_s - frames[-1][0] < MOST_GAP_S:
            frames.clear()
        frames.append((at_s, pose, acceleration))
        while at_s - frames[0][0] > STRETCH_S:
            frames.popleft()
        full = at_s - frames[0][0] > STRETCH_S - MOST_GAP_S and len(frames) >= LEAST
        if not full or at_s < self._next_s:
            return None
        self._next_s = at_s + EVERY_S
        times, poses, said = zip(*frames, strict=True)
        return unit(
            np.array(times),
            np.stack([each.position for each in poses]),
            np.stack([each.rotation.T for each in poses]),
            np.stack(said),
        )


def unit(
    times: np.ndarray, places: np.ndarray, turned: np.ndarray, said: np.ndarray
) -> Length | None:
    """The length of a unit in which a camera was at ``places`` (n, 3) at ``times`` (n,), seconds,
    its axes ``turned`` (n, 3, 3), while sensors ``said`` (n, 3), m/s^2; None where it hardly
    moved."""
    since = times - times[0]
    pushed = np.concatenate([np.einsum("nij,nj->ni", turned, said)[:, :, None], turned], axis=2)
    ways = np.stack([_integrated(since, _smooth(pushed[..., k])) for k in range(4)], axis=2)
    inner = _smooth(since[:, None])[:, 0]
    drift = np.stack([np.ones_like(inner), inner, inner**2], axis=1)
    free = np.concatenate([np.kron(drift, np.eye(3)), ways[..., 1:].reshape(-1, 3)], axis=1)
    way, places = (each.ravel() for each in (ways[..., 0], _smooth(places)))
    both = np.stack([way, places], axis=1)
    way, places = (both - free @ np.linalg.lstsq(free, both, rcond=1e-6)[0]).T
    power = float(places @ places)
    metres = float(places @ way) / power if power > 0 else 0.0
    if metres <= 0:
        return None
    rest = float(np.sum((way - metres * places) ** 2))
    spread = math.sqrt(rest / power / SWAYS) / metres
    return Length(metres, math.hypot(spread, SAME_SPREAD)) if spread < MOST_SPREAD else None


def _smooth(values: np.ndarray) -> np.ndarray:
    """Of values (n, k) those that change slowly, without the ends."""
    return np.stack([np.convolve(each, SMOOTH, "valid") for each in values.T], axis=1)


def _integrated(times: np.ndarray, pushed: np.ndarray) -> np.ndarray:
    """Twice, from rest; between two times it changes evenly."""
    cut = (len(times) - len(pushed)) // 2
    step = np.diff(times[cut : len(times) - cut])[:, None]
    speed, way = np.zeros_like(pushed), np.zeros_like(pushed)
    speed[1:] = np.cumsum(step * (pushed[:-1] + pushed[1:]) / 2, axis=0)
    way[1:] = np.cumsum(step * speed[:-1] + step**2 * (2 * pushed[:-1] + pushed[1:]) / 6, axis=0)
    return way
