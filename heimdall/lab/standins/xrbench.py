"""XRBench's networks (Kwon et al., MLSys '23): a table.

XRBench publishes shapes of layers and no weights. These have the operators and sizes of the
architectures that it names, and random weights. ``layers`` and ``bound_gmac`` are of its files:
convolutions and products, and the product of all their dimensions, as if each were dense and at
stride 1, so more than any of them computes; ``ops`` and ``gmac`` are of ours: nodes, and
multiply-adds as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from heimdall.lab.standins import networks, sequences, vision


@dataclass(frozen=True)
class Network(networks.Network):
    """One row; see above."""

    layers: int
    bound_gmac: float


NETWORKS: Mapping[str, Network] = {
    "ritnet": Network(vision.ritnet, (160, 96), 91, 0.988, 42, 1.09),
    "fbnet-c": Network(vision.fbnet_c, (160, 96), 121, 0.125, 63, 7.08),
    "rgbd-200": Network(vision.rgbd_200, (320, 224), 78, 4.662, 34, 19.08),
    "hand-graph": Network(vision.hand_graph, (128, 128), 342, 2.725, 224, 4.17),
    "ed-tcn": Network(sequences.ed_tcn, (128, 1), 13, 0.108, 4, 0.37),
    "res8-narrow": Network(sequences.res8_narrow, (40, 100), 21, 0.007, 8, 0.007),
    "emformer-24l": Network(sequences.emformer_24l, (320, 128), 750, 10.103, 120, 9.66),
    "hrvit-b1": Network(vision.hrvit_b1, (256, 256), 976, 2.408, 423, 27.02),
    "faster-rcnn": Network(vision.faster_rcnn, (320, 224), 333, 3.290, 138, 14.35),
    "midas-small": Network(vision.midas_small, (256, 256), 203, 4.684, 92, 37.84),
    "plane-rcnn": Network(vision.plane_rcnn, (160, 128), 282, 7.088, 153, 8.74),
}
