"""What a captured session holds: the topics of its MCAP file, and its messages as bytes and back.

Pictures and cameras are messages of Foxglove's schemas (foxglove.CompressedImage and
foxglove.CameraCalibration), which its viewers and others show: ours in protobuf, those of other
programs in JSON, too. The rest is JSON.
"""

from __future__ import annotations

import base64
import functools
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heimdall.capture.device_pose import DeviceLight, DevicePlane, DevicePose
from heimdall.capture.lens import Camera, Motion
from heimdall.capture.lens_models import lens_of, model_of
from heimdall.capture.pose import Pose
from heimdall.errors import ConfigError

PICTURES = "/camera/image"
CAMERAS = "/camera/calibration"
MOTION = "/camera/motion"  # JSON, before the picture that it is of
DEVICE = "/camera/device"  # JSON, the same of what a device says that tracks itself
RUN = "/heimdall/run"  # once, first: the app, and what the coordinator was made of
DECISIONS = "/heimdall/decisions"
RESULTS = "/heimdall/results"
INPUTS = "/heimdall/inputs"
STATES = "/heimdall/states"  # of recurrent networks, by DNN and input: none first, then each second

SCHEMA = 1
IMAGE_SCHEMA, CAMERA_SCHEMA = "foxglove.CompressedImage", "foxglove.CameraCalibration"
PROTOBUF, JSON = "protobuf", "json"  # how a channel's messages are encoded
JSON_SCHEMA = json.dumps({"type": "object"}).encode()
LARGEST = 1 << 28  # bytes of a record, or of an array: larger ones come from damage
_LIGHT = ("towards", "main", "around")
_GUESSED_SUFFIX = ", guessed"
_GUESSED = "camera" + _GUESSED_SUFFIX  # the frame's name says so, for there is no field
_SECONDS, _NANOS = ("sec", "secs", "seconds"), ("nsec", "nsecs", "nanosec", "nanos")
_STAMP = ".google.protobuf.Timestamp"

# Field: number, type, and whether there are many, as foxglove-schemas has them.
_FIELDS = {
    IMAGE_SCHEMA: {
        "timestamp": (1, _STAMP, False),
        "data": (2, "TYPE_BYTES", False),
        "format": (3, "TYPE_STRING", False),
        "frame_id": (4, "TYPE_STRING", False),
    },
    CAMERA_SCHEMA: {
        "timestamp": (1, _STAMP, False),
        "width": (2, "TYPE_FIXED32", False),
        "height": (3, "TYPE_FIXED32", False),
        "distortion_model": (4, "TYPE_STRING", False),
        "D": (5, "TYPE_DOUBLE", True),
        "K": (6, "TYPE_DOUBLE", True),
        "R": (7, "TYPE_DOUBLE", True),
        "P": (8, "TYPE_DOUBLE", True),
        "frame_id": (9, "TYPE_STRING", False),
    },
}


@dataclass(frozen=True)
class Compressed:
    """A picture as it is stored: ``data`` in a ``format`` of OpenCV's ("jpeg", "png"), of the
    camera whose ``frame`` has that name. ``at_ns``: 0 where the message has no time."""

    at_ns: int
    data: bytes
    format: str
    frame: str = ""


def image_message(at_ns: int, data: bytes, form: str) -> bytes:
    """A picture that was taken at ``at_ns`` (ns since 1970), ready compressed."""
    return _message(IMAGE_SCHEMA, at_ns, data=data, format=form, frame_id="camera")


def read_image(data: bytes, encoding: str = PROTOBUF) -> Compressed:
    """The picture of a message. Raises ConfigError for bytes that are none."""
    message = _parsed(IMAGE_SCHEMA, data, encoding)
    at_ns = message.timestamp.ToNanoseconds()
    return Compressed(at_ns, message.data, message.format, _frame(message))


def camera_message(at_ns: int, camera: Camera) -> bytes:
    """A camera without its pose, from ``at_ns`` on."""
    k = [camera.fx, 0.0, camera.cx, 0.0, camera.fy, camera.cy, 0.0, 0.0, 1.0]
    return _message(
        CAMERA_SCHEMA,
        at_ns,
        width=camera.width,
        height=camera.height,
        distortion_model=model_of(camera),
        D=camera.distortion,
        K=k,
        R=[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        P=[*k[:3], 0.0, *k[3:6], 0.0, *k[6:], 0.0],
        frame_id=_GUESSED if camera.guessed else "camera",
    )


def read_camera(data: bytes, encoding: str = PROTOBUF, *, rectified: bool = False) -> Camera:
    """The camera of a message; ``rectified``: of pictures without distortion, which its P is about.
    Raises ConfigError where it is not calibrated, has a lens of a model that is not known, or makes
    no sense."""
    message = _parsed(CAMERA_SCHEMA, data, encoding)
    if rectified and len(message.P) == 12 and any(message.P):
        del message.K[:], message.D[:]
        message.K.extend(message.P[at] for at in (0, 1, 2, 4, 5, 6, 8, 9, 10))
        message.distortion_model = ""
    k = list(message.K)
    if not any(k):  # as sensor_msgs/CameraInfo says it
        raise ConfigError("a camera of the capture is not calibrated: its matrix is absent or zero")
    if len(k) != 9 or not all(map(math.isfinite, (*k, *message.D))) or min(k[0], k[4]) <= 0:
        raise ConfigError(f"a camera of the capture has the matrix {k}: that is none")
    if not (message.width and message.height):
        raise ConfigError("a camera of the capture has no size")
    fx, _, cx, _, fy, cy = k[:6]
    try:
        lens = lens_of(message.distortion_model, message.D)
    except ConfigError as error:
        raise ConfigError(f"a camera of the capture: {error}") from error
    guessed = message.frame_id == _GUESSED
    return Camera(message.width, message.height, fx, fy, cx, cy, guessed=guessed, **lens)


def camera_frame(data: bytes, encoding: str = PROTOBUF) -> str:
    """The name of the frame that a camera's message is of, "" if it says none. Raises ConfigError
    for bytes that are none."""
    return _frame(_parsed(CAMERA_SCHEMA, data, encoding))


def _frame(message: Any) -> str:
    name: str = message.frame_id
    return name.removesuffix(_GUESSED_SUFFIX).strip("/")


def motion_data(motion: Motion) -> dict[str, Any]:
    """What sensors said, as JSON data."""
    said = {"down": motion.down, "acceleration": motion.acceleration}
    return {name: np.asarray(each).tolist() for name, each in said.items() if each is not None}


def read_motion(data: Mapping[str, Any]) -> Motion:
    """What sensors said. Raises ConfigError where that makes no sense."""
    return Motion(data.get("down"), data.get("acceleration"))  # type: ignore[arg-type] # it looks


def device_data(said: DevicePose) -> dict[str, Any]:
    """What a device says of where it is, as JSON data."""
    planes = [
        {
            **_pose_data(each.pose),
            "id": each.id,
            "kind": each.kind,
            "outline": np.asarray(each.outline).tolist(),
        }
        for each in said.planes
    ]
    data = {"pose": _pose_data(said.pose) if said.pose is not None else None, "planes": planes}
    if said.light is not None:
        light = {name: getattr(said.light, name).tolist() for name in _LIGHT}
        data["light"] = light
    return data


def read_device(data: Mapping[str, Any]) -> DevicePose:
    """What a device said of where it is. Raises ConfigError where that makes no sense."""
    try:
        planes = [
            DevicePlane(each["id"], _read_pose(each), each["outline"], each["kind"])
            for each in data["planes"]
        ]
        pose = _read_pose(data["pose"]) if data["pose"] is not None else None
        said = data.get("light")
        light = None if said is None else DeviceLight(*(said[name] for name in _LIGHT))
        return DevicePose(pose, planes, light)
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"a device's pose of the capture lacks {error}") from error


def _pose_data(pose: Pose) -> dict[str, Any]:
    return {"rotation": pose.rotation.tolist(), "translation": pose.translation.tolist()}


def _read_pose(data: Mapping[str, Any]) -> Pose:
    return Pose(data["rotation"], data["translation"])


def array_data(array: np.ndarray) -> dict[str, Any]:
    """An array as JSON data: its bytes, packed, in base64."""
    data = zlib.compress(np.ascontiguousarray(array).tobytes(), 1)
    text = base64.b64encode(data).decode()
    return {"dtype": array.dtype.str, "shape": list(array.shape), "zlib": text}


def read_array(data: Mapping[str, Any]) -> np.ndarray:
    """The array of ``array_data``. Raises ConfigError for data that is none."""
    try:
        dtype, shape = np.dtype(data["dtype"]), data["shape"]
        packed = zlib.decompressobj()
        size = dtype.itemsize * math.prod(shape)
        if size > LARGEST:
            raise ValueError(f"{size} bytes")
        held = packed.decompress(base64.b64decode(data["zlib"]), max(size, 1))
        flat: np.ndarray = np.frombuffer(held, dtype)
        array: np.ndarray = flat.reshape(shape)
        return array
    except (KeyError, TypeError, ValueError, OverflowError, zlib.error) as error:
        raise ConfigError(f"an array of the capture is none: {error!r}") from error


def schema_bytes(name: str) -> bytes:
    """The schema of a kind of message, as MCAP files hold it."""
    from google.protobuf import descriptor_pb2, timestamp_pb2

    files = descriptor_pb2.FileDescriptorSet()
    timestamp_pb2.DESCRIPTOR.CopyToProto(files.file.add())
    files.file.add().CopyFrom(_file(name))
    found: bytes = files.SerializeToString()
    return found


@functools.cache
def _kinds() -> dict[str, Any]:
    """The classes of messages by name, in a pool of their own: another package's are not ours."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

    pool = descriptor_pool.DescriptorPool()
    stamp = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(stamp)
    pool.Add(stamp)
    for name in _FIELDS:
        pool.Add(_file(name))
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in _FIELDS
    }


def _file(name: str) -> Any:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

    package, _, short = name.partition(".")
    file = FileDescriptorProto(
        name=f"{package}/{short}.proto",
        package=package,
        syntax="proto3",
        dependency=["google/protobuf/timestamp.proto"],
    )
    message = file.message_type.add(name=short)
    for field, (number, kind, many) in _FIELDS[name].items():
        label = "LABEL_REPEATED" if many else "LABEL_OPTIONAL"
        added = message.field.add(name=field, number=number)
        added.label = getattr(FieldDescriptorProto, label)
        if kind == _STAMP:
            added.type, added.type_name = FieldDescriptorProto.TYPE_MESSAGE, kind
        else:
            added.type = getattr(FieldDescriptorProto, kind)
    return file


def _message(name: str, at_ns: int, **fields: Any) -> bytes:
    message = _kinds()[name](**fields)
    message.timestamp.FromNanoseconds(at_ns)
    found: bytes = message.SerializeToString()
    return found


def _parsed(name: str, data: bytes, encoding: str) -> Any:
    from google.protobuf.message import DecodeError

    try:
        return _from_json(name, data) if encoding == JSON else _kinds()[name].FromString(data)
    except (DecodeError, ValueError, RecursionError) as error:
        raise ConfigError(f"a message of the capture is no {name}: {error}") from error


def _first_of(stamp: dict[str, Any], names: Sequence[str]) -> int:
    return int(next((stamp[each] for each in names if each in stamp), 0))


def _from_json(name: str, data: bytes) -> Any:
    """A message in JSON: bytes in base64, and a time as Foxglove's schemas have it ({"sec": 1,
    "nsec": 2}), as ROS has it, or as protobuf's. Raises ValueError."""
    from google.protobuf.json_format import Error, ParseDict

    fields = json.loads(data)
    if not isinstance(fields, dict):
        raise ValueError("it is no JSON object")
    stamp, message = fields.pop("timestamp", None), _kinds()[name]()
    try:
        ParseDict({each: fields[each] for each in _FIELDS[name] if each in fields}, message)
        if isinstance(stamp, dict):
            seconds, nanos = (_first_of(stamp, each) for each in (_SECONDS, _NANOS))
            message.timestamp.FromNanoseconds(seconds * 10**9 + nanos)
        elif stamp is not None:
            message.timestamp.FromJsonString(stamp)
    except (Error, TypeError, OverflowError) as error:
        raise ValueError(str(error)) from error
    return message
