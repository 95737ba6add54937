"""XRBench's networks (Kwon et al., MLSys '23): a table, and files that are built from it.

XRBench publishes shapes of layers and no weights. These have the operators and sizes of the
architectures that it names, and random weights, in the user's cache from when they are first asked
for. ``layers`` and ``bound_gmac`` are of its files: convolutions and products, and the product of
all their dimensions, as if each were dense and at stride 1, so more than any of them computes;
``ops`` and ``gmac`` are of ours: nodes, and multiply-adds as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from heimdall.errors import ConfigError, unknown
from heimdall.lab.standins import sequences, vision
from heimdall.lab.standins.builder import Builder
from heimdall.system import paths

PREFIX = "xrbench:"  # xrbench:ritnet
VERSION = 1  # of what is built


@dataclass(frozen=True)
class Network:
    """One row; see above. ``input``: its width and height."""

    build: Callable[[], Builder]
    input: tuple[int, int]
    layers: int
    bound_gmac: float
    ops: int
    gmac: float


NETWORKS: Mapping[str, Network] = {
    "ritnet": Network(vision.ritnet, (160, 96), 42, 1.09, 91, 0.988),
    "fbnet-c": Network(vision.fbnet_c, (160, 96), 63, 7.08, 121, 0.125),
    "rgbd-200": Network(vision.rgbd_200, (320, 224), 34, 19.08, 78, 4.662),
    "hand-graph": Network(vision.hand_graph, (128, 128), 224, 4.17, 342, 2.725),
    "ed-tcn": Network(sequences.ed_tcn, (128, 1), 4, 0.37, 13, 0.108),
    "res8-narrow": Network(sequences.res8_narrow, (40, 100), 8, 0.007, 21, 0.007),
    "emformer-24l": Network(sequences.emformer_24l, (320, 128), 120, 9.66, 750, 10.103),
    "hrvit-b1": Network(vision.hrvit_b1, (256, 256), 423, 27.02, 976, 2.408),
    "faster-rcnn": Network(vision.faster_rcnn, (320, 224), 138, 14.35, 333, 3.290),
    "midas-small": Network(vision.midas_small, (256, 256), 92, 37.84, 203, 4.684),
    "plane-rcnn": Network(vision.plane_rcnn, (160, 128), 153, 8.74, 282, 7.088),
}


def network(name: str) -> Network:
    """The row of ``xrbench:NAME``. Raises ConfigError for one that there is not."""
    own = name.removeprefix(PREFIX)
    if own not in NETWORKS:
        raise ConfigError(unknown("network of XRBench", own, NETWORKS))
    return NETWORKS[own]


def built(name: str) -> Path:
    """The file of ``xrbench:NAME``, which takes seconds the first time. Raises ConfigError for one
    that there is not, or that cannot be written."""
    row, own = network(name), name.removeprefix(PREFIX)
    path = paths.cache_dir() / "standins" / f"{own}-{VERSION}.onnx"
    if not path.is_file():
        try:
            paths.replace_file(path, row.build().model().SerializeToString())
        except OSError as error:
            raise ConfigError(f"{name} cannot be written: {error}") from error
    return path
