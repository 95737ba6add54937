"""Footage for accuracy: real clips played to and fro, with or without a moving camera, and what
the networks find in every frame of them (section 9.6 of the Heimdall paper takes that as truth).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from heimdall.capture import Frame
from heimdall.capture.readers import open_clip
from heimdall.engine.base import Engine
from heimdall.errors import ConfigError, DeviceError
from heimdall.graph.graph import load_graph
from heimdall.models.base import Pipeline
from heimdall.models.walk import Tensors, run_pipeline

VIEW = 0.75  # of the picture's sides: what a moving camera sees at once
SWAY_S = (2.3, 3.1, 4.7)  # periods of a hand that holds a phone: across, down, roll and zoom
ROLL_DEGREES, ZOOM = 4.0, 0.06


def read_clip(path: Path, seconds: float) -> list[np.ndarray]:
    """The clip's frames, BGR uint8 (h, w, 3), to and fro until ``seconds`` at 30 fps are full.

    Forward and back again has no cut, which played in a loop would come every few seconds.
    Raises ConfigError when the file holds no two frames.
    """
    count, forward = max(1, round(seconds * 30)), list[np.ndarray]()
    with suppress(DeviceError), closing(open_clip(path)) as clip:
        while len(forward) < count and (image := clip.read()) is not None:
            forward.append(image)
    if len(forward) < 2:
        raise ConfigError(f"{path} is no clip that can be read: accuracy needs two frames")
    there_and_back = forward + forward[-2:0:-1]
    return [there_and_back[index % len(there_and_back)] for index in range(count)]


def with_moving_camera(pictures: Sequence[np.ndarray], fps: float) -> list[np.ndarray]:
    """The same pictures seen by a camera in a moving hand: a view of 3/4 of each side sways over
    the picture, rolls and zooms. Deterministic."""
    return [
        cv2.warpAffine(picture, _view(index / fps, picture.shape), picture.shape[1::-1])
        for index, picture in enumerate(pictures)
    ]


def _view(time_s: float, shape: Sequence[int]) -> np.ndarray:
    height, width = shape[:2]
    across, down, slow = (math.sin(2 * math.pi * time_s / period) for period in SWAY_S)
    zoom = (1 + ZOOM * slow) / VIEW
    room = 0.5 * (1 - VIEW) - ZOOM  # of the sides: it never looks past the edge
    centre = (width * (0.5 + 0.6 * room * across), height * (0.5 + 0.6 * room * down))
    view = cv2.getRotationMatrix2D(centre, ROLL_DEGREES * slow, zoom)
    view[0, 2] += width / 2 - centre[0]
    view[1, 2] += height / 2 - centre[1]
    return view


def frames(pictures: Sequence[np.ndarray], fps: float) -> list[Frame]:
    """As a camera of ``fps`` would have delivered them from time 0 on."""
    return [
        Frame(picture, index, round(index * 1e9 / fps)) for index, picture in enumerate(pictures)
    ]


def results_of(pipeline: Pipeline, engine: Engine, pictures: Sequence[np.ndarray]) -> Iterator[Any]:
    """The pipeline's result of every picture."""
    networks = [
        engine.load(load_graph(network.path, network.shapes or None))
        for network in pipeline.networks
    ]
    states = [network.new_state() for network in networks]

    def infer(stage: int, inputs: Tensors) -> Tensors:
        return networks[stage].infer(states[stage], inputs)

    for picture in pictures:
        yield run_pipeline(pipeline, picture, infer)
