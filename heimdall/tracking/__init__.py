"""Latency compensation: results and pinned content follow the picture between inferences.

``flow``      sparse optical flow: the same points found again in each new frame
``patch``     a piece of the picture that moves as one, known by the points on it
``field``     a piece that moves in itself, such as a person's outline
``movers``    boxes that move by themselves, and keep their ids: ``swarm`` has the points inside
              them, ``motion`` how they go on, ``identity`` finds them again, by ``assign``
``carry``     a DNN's result, moved from its own frame to the newest, without jumps
``tracker``   ties them to a run: frames in, results in, what to draw out
``pose``      where the camera is, in six degrees of freedom
``world``     what an app's content stands in, by that pose
"""

from heimdall.tracking.patch import Anchor
from heimdall.tracking.pose import Board, ImageTarget, Marker
from heimdall.tracking.tracker import Tracker
from heimdall.tracking.world import Hit, Plane, World, WorldAnchor

__all__ = [
    "Anchor",
    "Board",
    "Hit",
    "ImageTarget",
    "Marker",
    "Plane",
    "Tracker",
    "World",
    "WorldAnchor",
]
