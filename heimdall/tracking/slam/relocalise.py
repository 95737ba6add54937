"""Where the camera may be, once it was lost: by keyframes that look like the picture."""

from __future__ import annotations

import numpy as np

from heimdall.capture.lens import Pose
from heimdall.tracking.slam.model import Map
from heimdall.tracking.slam.picture import Picture

TRIED = 2  # keyframes, in each frame
SIMILAR = 0.6  # correlation of whole pictures


def recognised(known: Map, picture: Picture, turn: int) -> list[Pose]:
    """Poses worth a try, of the keyframes that are most similar to ``picture``; each ``turn`` others."""
    if not known.keyframes:
        return []
    keyframes = list(known.keyframes.values())
    alike = np.array([each.picture.thumb for each in keyframes]) @ picture.thumb
    order = np.argsort(-alike)
    best = [keyframes[at] for at in order[: 3 * TRIED]]
    begin = turn % 3 * TRIED if alike[order[0]] < 0.9 else 0
    return [each.pose for each in best[begin : begin + TRIED]]
