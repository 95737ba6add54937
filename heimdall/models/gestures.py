"""Named gestures of a hand, told by how far its fingers are bent.

Angles between bones, and lengths over one another: where the hand is, how large and how it is
turned does not matter. Only whether a thumb is up or down is a matter of the picture.
"""

from __future__ import annotations

import numpy as np

GESTURES = ("open palm", "fist", "point", "victory", "pinch", "thumb up", "thumb down")
WRIST, INDEX_KNUCKLE, LITTLE_KNUCKLE = 0, 5, 17
THUMB_TIP, INDEX_TIP, MIDDLE_KNUCKLE, MIDDLE_TIP = 4, 8, 9, 12
# Degrees that the joints of a finger, from its knuckle on, are bent in all. A fist has 200 and
# more; what is in between is no gesture.
STRAIGHT, FOLDED = 75.0, 130.0
THUMB_STRAIGHT = 60.0  # of its two outer joints
# The thumb's tip over its middle joint, both from the little finger's knuckle: it sticks out.
STICKS_OUT = 1.1
TOUCH = 0.35  # of the palm's length: thumb and index touch
SPREAD = (
    1.3  # tips of index and middle finger over their knuckles: a V, not two fingers side by side
)
UPRIGHT = 45.0  # degrees from straight up, or down


def gesture(points: np.ndarray) -> str | None:
    """Which of ``GESTURES`` a hand of 21 points (21, 3) makes; x right, y down in the picture, all
    axes of one unit. None: none of them."""
    points = np.asarray(points, np.float64)
    bent = bends(points)
    straight, folded = bent < STRAIGHT, bent > FOLDED
    if _touch(points):
        return "pinch"
    if folded[1:].all():
        return _thumb(points) if _sticks_out(points, bent) else "fist"
    if straight[1:].all():
        return "open palm" if _sticks_out(points, bent) else None
    if straight[1] and folded[2:].all():
        return "point"
    if straight[1:3].all() and folded[3:].all():
        tips = _apart(points, INDEX_TIP, MIDDLE_TIP)
        spread = tips > SPREAD * _apart(points, INDEX_KNUCKLE, MIDDLE_KNUCKLE)
        return "victory" if spread else None
    return None


def bends(points: np.ndarray) -> np.ndarray:
    """How far each finger is bent, the thumb first, degrees (5,): the angles between its bones, of
    the thumb without the one in the wrist."""
    joints = np.array([[1, 2, 3, 4], *([WRIST, *range(k, k + 4)] for k in (5, 9, 13, 17))], object)
    return np.array([_bend(points[list(chain)]) for chain in joints])


def _bend(chain: np.ndarray) -> float:
    bones = np.diff(chain, axis=0)
    lengths = np.linalg.norm(bones, axis=1)
    cosines = (bones[1:] * bones[:-1]).sum(axis=1) / np.maximum(lengths[1:] * lengths[:-1], 1e-12)
    return float(np.degrees(np.arccos(cosines.clip(-1, 1))).sum())


def _apart(points: np.ndarray, one: int, other: int) -> float:
    return float(np.linalg.norm(points[one] - points[other]))


def _touch(points: np.ndarray) -> bool:
    """Thumb and index touch, before the palm: in a fist they are near each other, too."""
    gap, palm = _apart(points, THUMB_TIP, INDEX_TIP), _apart(points, WRIST, MIDDLE_KNUCKLE)
    reach, knuckle = (_apart(points, WRIST, each) for each in (INDEX_TIP, INDEX_KNUCKLE))
    return gap < TOUCH * palm and reach > knuckle


def _sticks_out(points: np.ndarray, bent: np.ndarray) -> bool:
    tip, joint = (_apart(points, each, LITTLE_KNUCKLE) for each in (THUMB_TIP, 2))
    return bool(bent[0] < THUMB_STRAIGHT and tip > STICKS_OUT * joint)


def _thumb(points: np.ndarray) -> str | None:
    x, y = (points[THUMB_TIP] - points[2])[:2]
    if abs(x) > abs(y) * np.tan(np.radians(UPRIGHT)):
        return None
    return "thumb up" if y < 0 else "thumb down"
