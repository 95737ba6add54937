"""What a phone says of itself as a camera: its sensors, and where WebXR tracks it.

WebXR has metres, y up, and a camera that looks along -z with y up in its picture (WebXR Device API,
section 7); ours looks along z with y down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from heimdall.capture.device_pose import DeviceLight, DevicePlane, DevicePose
from heimdall.capture.lens import Camera, Motion
from heimdall.capture.pose import Pose
from heimdall.render.preview.protocol import Lit, Placed, Sensed, Surfaces

_OURS = np.diag([1.0, -1.0, -1.0])  # from WebXR's camera


def said(
    camera: Camera,
    sample: Sensed,
    planes: Sequence[DevicePlane],
    light: DeviceLight | None = None,
) -> Camera:
    """``camera`` with what was sensed as it took a picture, and, where WebXR tracks the phone, its
    pose, its lens, those planes and that light."""
    motion = Motion(sample.down, sample.acceleration) if sample.down is not None else None
    viewed = sample.viewed
    if viewed is None:
        return replace(camera, motion=motion)
    width, height = camera.size
    fx, fy, cx, cy = viewed.lens
    pose = _camera(viewed.place) if viewed.place is not None else None
    return Camera(
        *(width, height, fx * width, fy * height, cx * width - 0.5, cy * height - 0.5),
        motion=motion,
        device=DevicePose(pose, planes, light),
    )


def planes_of(message: Surfaces) -> Sequence[DevicePlane]:
    """The planes of a message."""
    return tuple(
        DevicePlane(each.id, _own(each.place), each.outline, each.kind) for each in message.planes
    )


def light_of(message: Lit) -> DeviceLight:
    """The light of a message."""
    return DeviceLight(message.towards, message.main, message.around)


def _own(place: Placed) -> Pose:
    """From own axes to WebXR's."""
    x, y, z, w = np.array(place.turn) / np.linalg.norm(place.turn)
    turned = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return Pose(np.array(turned), np.array(place.at, np.float64))


def _camera(place: Placed) -> Pose:
    """From WebXR's axes to our camera's."""
    inverse = _own(place).inverse
    return Pose(_OURS @ inverse.rotation, _OURS @ inverse.translation)
