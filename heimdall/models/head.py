"""A head as a thing in space: MediaPipe's canonical face, and where it must be to look as it does.

The head's own axes, metres: x to the right of the picture when it looks at the camera, y up, z out
of the face; the origin is inside, between the eyes in height of the nose's root and about 4 cm
behind it.
"""

from __future__ import annotations

from functools import cache

import cv2
import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.system import paths

FILE = "canonical_face.obj"  # in assets/models; centimetres
# Forehead, temples, corners of the eyes, nose, cheekbones: what neither speaks nor laughs.
RIGID = (4, 6, 10, 33, 54, 67, 117, 119, 121, 127, 129, 132, 133, 136, 143, 147, 198, 205, 263, 284,
         297, 346, 348, 350, 356, 358, 361, 362, 365, 372, 376, 420, 425)  # fmt: skip


@cache
def canonical_face() -> tuple[np.ndarray, np.ndarray]:
    """The vertices (468, 3) of an adult's face, metres, in the order of ``FaceMesh.points``, and
    its triangles (898, 3), anticlockwise from outside. They cannot be written."""
    vertices, triangles = [], []
    for line in (paths.ASSETS / "models" / FILE).read_text(encoding="ascii").splitlines():
        kind, *values = line.split() or [""]
        if kind == "v":
            vertices.append([float(value) / 100 for value in values])
        elif kind == "f":
            triangles.append([int(value.split("/")[0]) - 1 for value in values])
    face = np.array(vertices), np.array(triangles, np.int32)
    for array in face:
        array.flags.writeable = False
    return face


def head_pose(points: np.ndarray, camera: Camera) -> Pose:
    """From the head's axes to the camera's, for the points (468, 2 or 3) of a mesh in the pixels
    of ``camera``. How far it is follows from an adult's size."""
    vertices, _ = canonical_face()
    rigid = list(RIGID)
    known, seen = vertices[rigid], camera.straightened(points[rigid, :2])
    lens = camera.matrix, None
    _, turned, moved = cv2.solvePnP(known, seen, *lens, flags=cv2.SOLVEPNP_SQPNP)
    turned, moved = cv2.solvePnPRefineLM(known, seen, *lens, turned, moved)
    return Pose.of(turned, moved)
