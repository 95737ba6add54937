"""Heimdall: augmented reality that runs several neural networks and draws every frame on one GPU.

A frame flows through these rooms; each imports only from those below it in this list:

- `heimdall.cli`          the commands
- `heimdall.simulator`    the same frame loop and coordinator on a virtual clock
- `heimdall.bench`        scenarios, and the systems that are compared on them
- `heimdall.runtime`      the frame loop and what drives it: setup, executor, controls, telemetry
- `heimdall.app`          what a scenario declares: its DNNs, how it reacts and draws
- `heimdall.render`       window and headless surfaces, scene, overlay, recorder, browser preview
- `heimdall.tracking`     carries results and pinned content along with the picture
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
"""

import time

from heimdall.app import DNN, App
from heimdall.errors import AppError, ConfigError, DeviceError, HeimdallError, ModelError

__all__ = ["DNN", "App", "AppError", "ConfigError", "DeviceError", "HeimdallError", "ModelError"]
__version__ = "0.1.0"

IMPORTED_S = time.perf_counter()  # when the program began, near enough: startup_s counts from it
