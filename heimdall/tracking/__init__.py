"""Latency compensation: results and pinned content follow the picture between inferences.

``flow``      sparse optical flow: the same points found again in each new frame
``patch``     a piece of the picture that moves as one, known by the points on it
``field``     a piece that moves in itself, such as a person's outline
``movers``    boxes that move by themselves, and stay who they are: ``swarm`` has the points inside
              them, ``motion`` how they go on, ``identity`` who is who by ``looks`` and ``assign``
``carry``     a DNN's result, moved from its own frame to the newest, without jumps
``tracker``   ties them to a run: frames in, results in, what to draw out
"""

from heimdall.tracking.patch import Anchor
from heimdall.tracking.tracker import Tracker

__all__ = ["Anchor", "Tracker"]
