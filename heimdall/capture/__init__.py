"""Where frames come from: cameras, files and streams, read on a thread of their own."""

from heimdall.capture.device_pose import DeviceLight, DevicePlane, DevicePose
from heimdall.capture.kinds import SOURCES
from heimdall.capture.lens import Camera, Motion
from heimdall.capture.pose import Pose
from heimdall.capture.readers import Reader
from heimdall.capture.source import Frame, Source, open_source

__all__ = [
    "SOURCES",
    "Camera",
    "DeviceLight",
    "DevicePlane",
    "DevicePose",
    "Frame",
    "Motion",
    "Pose",
    "Reader",
    "Source",
    "open_source",
]
