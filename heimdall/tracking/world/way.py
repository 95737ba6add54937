"""The way that the camera went, of late, where it is to be seen in the world as it is now."""

from __future__ import annotations

from collections import deque

import numpy as np

from heimdall.tracking.world.layout import Layout
from heimdall.tracking.world.setting import TARGET, Setting

APART_M = 0.01
MOST = 600  # places


class Way:
    """``points`` (n, 3), the newest last: the map's places, where a room has one."""

    def __init__(self) -> None:
        self._at: deque[np.ndarray] = deque(maxlen=MOST)
        self._layout: Layout | None = None
        self._setting: Setting | None = None

    @property
    def points(self) -> np.ndarray:
        return np.array(self._at).reshape(-1, 3)

    def add(self, position: np.ndarray) -> None:
        """The camera is there now."""
        if not self._at or np.linalg.norm(position - self._at[-1]) > APART_M:
            self._at.append(position)

    def follow(self, layout: Layout | None, now: Setting | None) -> None:
        """A map has these axes and unit now; targets keep theirs, and nothing says where another
        map lies."""
        known, before = self._layout, self._setting
        self._layout, self._setting = layout, now
        if now is None or now is before or now.source == TARGET:
            return
        same = known is not None and layout is not None and known.map is layout.map
        kept = now.points(before.from_points(self.points)) if same and before is not None else ()
        self._at = deque(kept, maxlen=MOST)
