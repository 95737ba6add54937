"""Latency compensation of one run: frames and results in, what to draw on each frame out.

Three threads meet here. The capture thread calls ``advance`` with each frame before it is
handed on; a pool thread calls ``renew`` with each result; the main thread asks, and never waits.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from heimdall.models.results import Mask
from heimdall.system.faults import Faults, say
from heimdall.tracking.carry import Carrier, Thing, carrier
from heimdall.tracking.flow import Flow, Tracks
from heimdall.tracking.patch import TOLERANCE, Anchor, Patch, chained

if TYPE_CHECKING:
    from heimdall.capture import Frame

REMEMBERED = 64  # frames: how late a result may come and still be carried
ANCHOR_REACH = 0.2  # of the picture's width: points so near say where an anchor goes
VIEWS = 4  # frames whose carried results are kept: the one being drawn may not be the newest


@dataclass
class _Hold:
    """What an anchor hangs on, and how far it had come before."""

    patch: Patch
    before: np.ndarray


class Tracker:
    """Follows the picture from the first question on; until then it costs nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted = False
        self._faults = Faults()
        self._flow = Flow()
        self._history: deque[Tracks] = deque(maxlen=REMEMBERED)
        self._size = (0, 0)
        self._masks = False  # some result is a mask, which needs the dense flow
        self._results: dict[str, Any] = {}  # the latest of each DNN, as it came
        self._carriers: dict[str, Carrier | None] = {}
        self._pinned: deque[tuple[int, weakref.ref[Anchor]]] = deque()  # not followed yet
        self._anchors: weakref.WeakKeyDictionary[Anchor, _Hold] = weakref.WeakKeyDictionary()
        self._views: dict[int, dict[str, Any]] = {}  # of each frame, by its sequence
        self._drawn = self._scene = -1  # frames: the one being drawn, the scene's first
        self._numbers = count()  # ids of what is seen in this run

    # --- main thread -----------------------------------------------------------------------

    def show(self, frame: Frame) -> None:
        """``frame`` is about to be drawn: answers are about it from now on."""
        self._drawn = frame.sequence

    def carried(self, dnn: str) -> Any:
        """The latest result of ``dnn``, moved to the frame being drawn; None before the first."""
        self._wanted = True
        view = self._views.get(self._drawn, {})
        return view.get(dnn, self._results.get(dnn))

    def anchor(self, point: tuple[float, float]) -> Anchor:
        """Pin ``point``, pixels of the frame being drawn, to the world."""
        self._wanted = True
        pinned = Anchor(point)
        self._pinned.append((self._drawn, weakref.ref(pinned)))
        return pinned

    # --- capture thread --------------------------------------------------------------------

    def advance(self, frame: Frame) -> None:
        """Follow the picture to ``frame``, and everything on it. A failure costs neither the
        picture nor a result: following starts again with the next frame."""
        if not self._wanted:
            return
        with self._lock:
            try:
                self._advance(frame)
            except Exception as error:
                self._faults.report(f"following the picture failed: {say(error)}", error)
                self._flow = Flow()
                self._history.clear()
                self._carriers, self._views = {}, {}

    def _advance(self, frame: Frame) -> None:
        self._size = (frame.image.shape[1], frame.image.shape[0])
        tracks = self._flow.advance(frame.image, frame.sequence, dense=self._masks)
        if tracks.cut:
            self._history.clear()
            self._carriers = {}
        if tracks.gone:
            self._scene = frame.sequence
            self._results = {dnn: _without_things(each) for dnn, each in self._results.items()}
        self._history.append(tracks)
        view = {dnn: self._carried(dnn, tracks) for dnn in self._carriers}
        self._follow_anchors(tracks)
        self._publish(frame.sequence, view)

    # --- pool ------------------------------------------------------------------------------

    def renew(self, dnn: str, result: Any, frame: Frame) -> None:
        """``result`` was computed on ``frame``: carry it from there to the newest frame."""
        with self._lock:
            gone = frame.sequence < self._scene
            self._results[dnn] = _without_things(result) if gone else result
            self._masks |= isinstance(result, Mask)
            try:
                path = self._path(frame.sequence)
                new = self._replaced(dnn, result, path, frame.image) if path else None
            except Exception as error:
                self._fail(dnn, error)
                new = None
            self._carriers[dnn] = new
            if self._history:
                newest = self._history[-1].sequence
                self._publish(newest, {**self._views.get(newest, {}), dnn: self._carried(dnn)})

    # --- with the lock held ----------------------------------------------------------------

    def _carried(self, dnn: str, tracks: Tracks | None = None) -> Any:
        """The result of ``dnn`` on the newest frame, to which ``tracks`` lead. One that cannot be
        carried stays where it was found until the DNN's next result."""
        carrier = self._carriers[dnn]
        try:
            if carrier is not None:
                if tracks is not None:
                    carrier.follow(tracks)
                return carrier.value()
        except Exception as error:
            self._fail(dnn, error)
            self._carriers[dnn] = None
        return self._results[dnn]

    def _fail(self, dnn: str, error: Exception) -> None:
        self._faults.report(f"{dnn}: carrying its result failed: {say(error)}", error)

    def _replaced(
        self, dnn: str, result: Any, path: list[Tracks], image: np.ndarray
    ) -> Carrier | None:
        old = self._carriers.get(dnn)
        new = carrier(result, path[0], self._size, old, self._numbers, image)
        if new is not None:
            later = path[1:]
            for tracks in (*later[new.stride - 1 : -1 : new.stride], *later[-1:]):
                new.follow(tracks)
            if type(old) is type(new):
                new.replace(old)  # type: ignore[arg-type]
        return new

    def _follow_anchors(self, tracks: Tracks) -> None:
        for pinned, hold in list(self._anchors.items()):
            if tracks.cut:
                self._anchors[pinned] = self._hold(pinned, tracks)
                continue
            hold.patch.follow(tracks)
            pinned.transform = chained(hold.before, hold.patch.transform)
        while self._pinned:
            sequence, reference = self._pinned.popleft()
            anchor = reference()
            if anchor is not None:
                path = self._path(sequence) or [tracks]
                hold = self._anchors[anchor] = self._hold(anchor, path[0])
                for each in path[1:]:
                    hold.patch.follow(each)
                anchor.transform = hold.patch.transform

    def _hold(self, pinned: Anchor, tracks: Tracks) -> _Hold:
        place, reach = np.array(pinned.at), ANCHOR_REACH * self._size[0]
        near = Patch(
            tracks,
            lambda points: np.linalg.norm(points - place, axis=1) < reach,
            TOLERANCE * max(self._size),
        )
        return _Hold(near, pinned.transform)

    def _path(self, sequence: int) -> list[Tracks]:
        """What is remembered from frame ``sequence`` on; nothing if that is forgotten, or was
        another scene."""
        path = [tracks for tracks in self._history if tracks.sequence >= sequence]
        return path if path and path[0].sequence == sequence else []

    def _publish(self, sequence: int, view: dict[str, Any]) -> None:
        recent = sorted(self._views)[-(VIEWS - 1) :]
        # A new dictionary: the main thread reads the old one meanwhile, without the lock.
        self._views = {**{known: self._views[known] for known in recent}, sequence: view}


def _without_things(result: Any) -> Any:
    """What is left of a result when its scene is gone."""
    return [] if isinstance(result, list) and all(isinstance(x, Thing) for x in result) else result
