"""The networks of DISB (Han et al., OSDI '22): a table.

It publishes weights for pictures of 224 x 224 and for 32 words. These are as they are but for the
sides of what they look at, half of those each, so that two cores without a GPU answer in time; and
their weights, which are random.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from heimdall.lab.standins import classifiers, sequences
from heimdall.lab.standins.networks import Network

SIDE, TOKENS = 112, 16
_PICTURE = (SIDE, SIDE)

NETWORKS: Mapping[str, Network] = {
    "resnet152": Network(partial(classifiers.resnet152, SIDE), _PICTURE, 360, 2.937),
    "densenet201": Network(partial(classifiers.densenet201, SIDE), _PICTURE, 608, 1.053),
    "vgg19": Network(partial(classifiers.vgg19, SIDE), _PICTURE, 43, 4.919),
    "inception-v3": Network(partial(classifiers.inception_v3, SIDE), _PICTURE, 215, 0.997),
    "distilbert": Network(partial(sequences.distilbert, TOKENS), (768, TOKENS), 211, 0.682),
}
