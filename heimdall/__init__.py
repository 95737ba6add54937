"""Heimdall: augmented reality that runs several neural networks and draws every frame on one GPU.

A frame flows through these rooms; each imports only from those below it in this list:

- `heimdall.lab`          the laboratory, which no other room knows: simulator, bench, policies
- `heimdall.cli`          the commands
- `heimdall.inspection`   a network on this machine: its profile, its chunks, is it right?
- `heimdall.lab.simulator`    the same frame loop and coordinator on a virtual clock
- `heimdall.lab.bench`        scenarios, and the systems that are compared on them
- `heimdall.serve`        networks for other processes, by the Open Inference Protocol
- `heimdall.runtime`      the frame loop and what drives it: runs, sessions, executor, telemetry
- `heimdall.app`          what a scenario declares: its DNNs, how it reacts and draws
- `heimdall.render`       window and headless surfaces, scene, overlay, recorder, browser preview
- `heimdall.tracking`     carries results along with the picture; where the camera is in the world
- `heimdall.analyzer`     profiles ops on this machine, and partitions networks into chunks
- `heimdall.models`       the catalogue of networks: preprocess and decode, one task a file
- `heimdall.engine`       OpenCL, onnxruntime and null behind one small contract
- `heimdall.capture`      camera, video file, stream or image -> Frame
- `heimdall.coordinator`  the pure state machine: which chunk of which network runs in this gap
- `heimdall.schedulers`   the policies it asks, one paper's idea a file
- `heimdall.graph`        an ONNX file as a graph of ops
- `heimdall.system`       paths, cores, clocks, priorities, threads: the process and its machine
- `heimdall.vocabulary`   events, actions, plans: the words that all of these share
- `heimdall.errors`       what can go wrong, in four kinds

What an app needs comes from here: `from heimdall import App, DNN, Detection, run`. A name is
imported when it is first used, so that `import heimdall` loads none of OpenCV, OpenGL and OpenCL.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from heimdall.system import began as _began  # noqa: F401  # the first import: it notes the time
from heimdall.system import environment as _environment
from heimdall.system import python as _python

if TYPE_CHECKING:
    from heimdall.app import DNN, App, Feed, Generate, RunOptions
    from heimdall.capture import (
        SOURCES,
        Camera,
        DeviceLight,
        DevicePlane,
        DevicePose,
        Frame,
        Motion,
        Pose,
        Reader,
        Source,
        open_source,
    )
    from heimdall.capture.sound import Sound
    from heimdall.engine import ENGINES, Engine
    from heimdall.errors import (
        AppError,
        ArgumentError,
        ConfigError,
        DeviceError,
        HeimdallError,
        ModelError,
        RequestError,
    )
    from heimdall.models import (
        CATALOG,
        Body,
        Body3D,
        Boxes,
        Detection,
        Embedding,
        FaceMesh,
        Hand,
        HeatMaps,
        ImageInput,
        Label,
        Labels,
        Mask,
        Masks,
        ModelEntry,
        Network,
        OnnxPipeline,
        Picture,
        Pipeline,
        Prepared,
        Speech,
        TextLine,
        TextRegion,
    )
    from heimdall.models.generation.answer import Answer
    from heimdall.models.generation.sampling import Sampling
    from heimdall.render import Key, Pointer, Scene, Scroll
    from heimdall.runtime.run import run
    from heimdall.runtime.session.notebook import show
    from heimdall.runtime.session.session import Session
    from heimdall.runtime.telemetry.summary import RunSummary
    from heimdall.schedulers import SCHEDULERS, Greedy, Scheduler
    from heimdall.tracking import (
        Anchor,
        Board,
        Hit,
        ImageTarget,
        Marker,
        Plane,
        World,
        WorldAnchor,
    )
    from heimdall.vocabulary.hearing import Hearing

__version__ = "0.2.0"

_environment.silence()

# Each name is also above, for type checkers, and in __all__; a test compares the three.
_HOMES = {
    "heimdall.app": "App DNN Feed Generate RunOptions",
    "heimdall.capture": "SOURCES Camera DeviceLight DevicePlane DevicePose Frame Motion Pose "
    "Reader Source open_source",
    "heimdall.capture.sound": "Sound",
    "heimdall.engine": "ENGINES Engine",
    "heimdall.errors": "AppError ArgumentError ConfigError DeviceError HeimdallError ModelError "
    "RequestError",
    "heimdall.models.generation.answer": "Answer",
    "heimdall.models.generation.sampling": "Sampling",
    "heimdall.models": "CATALOG Body Body3D Boxes Detection Embedding FaceMesh Hand HeatMaps "
    "ImageInput Label Labels Mask Masks ModelEntry Network OnnxPipeline Picture Pipeline Prepared "
    "Speech TextLine TextRegion",
    "heimdall.render": "Key Pointer Scene Scroll",
    "heimdall.runtime.run": "run",
    "heimdall.runtime.session.notebook": "show",
    "heimdall.runtime.session.session": "Session",
    "heimdall.runtime.telemetry.summary": "RunSummary",
    "heimdall.schedulers": "SCHEDULERS Greedy Scheduler",
    "heimdall.tracking": "Anchor Board Hit ImageTarget Marker Plane World WorldAnchor",
    "heimdall.vocabulary.hearing": "Hearing",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "CATALOG",
    "DNN",
    "ENGINES",
    "SCHEDULERS",
    "SOURCES",
    "Anchor",
    "Answer",
    "App",
    "AppError",
    "ArgumentError",
    "Board",
    "Body",
    "Body3D",
    "Boxes",
    "Camera",
    "ConfigError",
    "Detection",
    "DeviceError",
    "DeviceLight",
    "DevicePlane",
    "DevicePose",
    "Embedding",
    "Engine",
    "FaceMesh",
    "Feed",
    "Frame",
    "Generate",
    "Greedy",
    "Hand",
    "Hearing",
    "HeatMaps",
    "HeimdallError",
    "Hit",
    "ImageInput",
    "ImageTarget",
    "Key",
    "Label",
    "Labels",
    "Marker",
    "Mask",
    "Masks",
    "ModelEntry",
    "ModelError",
    "Motion",
    "Network",
    "OnnxPipeline",
    "Picture",
    "Pipeline",
    "Plane",
    "Pointer",
    "Pose",
    "Prepared",
    "Reader",
    "RequestError",
    "RunOptions",
    "RunSummary",
    "Sampling",
    "Scene",
    "Scheduler",
    "Scroll",
    "Session",
    "Sound",
    "Source",
    "Speech",
    "TextLine",
    "TextRegion",
    "World",
    "WorldAnchor",
    "open_source",
    "run",
    "show",
]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'heimdall' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})


_python.become()  # in a frozen app that was started again for one of our processes: ends here
