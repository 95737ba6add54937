"""Heimdall: augmented reality that runs several neural networks and draws every frame on one GPU.

A frame flows through these modules, in this order:

- `heimdall.app`          what a scenario declares: its DNNs, how it reacts and draws
- `heimdall.startup`      opens what a run needs: source, processors, surface, networks, profiles
- `heimdall.runtime`      the main thread: capture, coordinate, render at the target frame rate
- `heimdall.capture`      camera, video file, stream or image -> Frame
- `heimdall.models`       the catalogue of networks: preprocess and decode, one task a file
- `heimdall.coordinator`  the pure state machine: which chunk of which network runs in this gap
- `heimdall.schedulers`   the policies it asks, one paper's idea a file
- `heimdall.analyzer`     ONNX graph -> ops, their profile, and the partition into chunks
- `heimdall.execution`    what the coordinator's actions become on the worker threads
- `heimdall.engine`       OpenCL, onnxruntime and null behind one small contract
- `heimdall.tracking`     carries results and pinned content along with the picture
- `heimdall.render`       window and headless surfaces, scene, overlay
- `heimdall.controls`     what the person at the keyboard can change while an app runs
- `heimdall.stats`        what is counted, and the summary
- `heimdall.trace`        keeps a run to look at and to replay
- `heimdall.bench`        scenarios, and the systems that are compared on them
- `heimdall.simulator`    the same coordinator on a virtual clock; its phones are files in profiles/
- `heimdall.softgpu`      on a machine without a GPU: the cores that play one
- `heimdall.cli`          the commands
- `heimdall.scaffold`     writes a new app
"""

import time

from heimdall.app import DNN, App
from heimdall.errors import AppError, ConfigError, DeviceError, HeimdallError, ModelError

__all__ = ["DNN", "App", "AppError", "ConfigError", "DeviceError", "HeimdallError", "ModelError"]
__version__ = "0.1.0"

IMPORTED_S = time.perf_counter()  # when the program began, near enough: startup_s counts from it
