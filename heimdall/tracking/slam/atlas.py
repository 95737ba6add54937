"""Maps that the camera has left, kept for when it comes back (ORB-SLAM3: Campos et al., 2021)."""

from __future__ import annotations

from dataclasses import dataclass

from heimdall.tracking.slam.model import Map

MOST = 3  # 75 MB each, at most


@dataclass(frozen=True, eq=False)
class Left:
    """A map with what goes with it: the next point's id, and how many times as long its lens is as
    frames say: ``zoom`` as it is now, ``longer`` without a zoom."""

    map: Map
    next_id: int
    zoom: float
    longer: float


class Atlas:
    """A few of them. Not for several threads."""

    def __init__(self) -> None:
        self._left: list[Left] = []

    def keep(self, left: Left) -> None:
        """Of too many the smallest goes, but not the oldest: content was placed there first."""
        self._left = sorted([*self._left, left], key=lambda each: each.map.began)
        if len(self._left) > MOST:
            self._left.remove(min(self._left[1:], key=lambda each: len(each.map.keyframes)))

    def drop(self, left: Left) -> None:
        """It is in use again."""
        self._left.remove(left)

    def of(self, size: tuple[int, int], than: Map | None = None) -> list[Left]:
        """Those with pictures of that size, the oldest first; only ones older ``than`` another."""
        fitting = [each for each in self._left if each.map.size == size]
        return [each for each in fitting if than is None or each.map.began < than.began]
