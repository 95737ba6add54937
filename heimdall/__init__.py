"""Heimdall: augmented reality that runs several neural networks and draws every frame on one GPU.

A frame flows through these modules, in this order:

``app``          what a scenario declares: its DNNs, how it reacts and draws
``startup``      opens what a run needs: source, processors, surface, networks and their profiles
``runtime``      the main thread: capture, coordinate, render at the target frame rate
``capture``      camera, video file, stream or image -> Frame
``models``       the catalogue of networks: preprocess and decode, one task a file
``coordinator``  the pure state machine: which chunk of which network runs in this gap
``schedulers``   the policies it asks, one paper's idea a file
``analyzer``     ONNX graph -> ops, their profile, and the partition into chunks
``execution``    what the coordinator's actions become on the worker threads
``engine``       OpenCL, onnxruntime and null behind one small contract
``tracking``     carries results and pinned content along with the picture
``render``       window and headless surfaces, scene, overlay
``controls``     what the person at the keyboard can change while an app runs
``stats``        what is counted, and the summary; ``trace`` keeps a run to look at and to replay
``bench``        scenarios, and the systems that are compared on them
``simulator``    the same coordinator on a virtual clock, on a phone that is a file in profiles/
``softgpu``      on a machine without a GPU: the cores that play one
``cli``          the commands; ``scaffold`` writes a new app
"""

import time

from heimdall.app import DNN, App
from heimdall.errors import AppError, ConfigError, DeviceError, HeimdallError, ModelError

__all__ = ["DNN", "App", "AppError", "ConfigError", "DeviceError", "HeimdallError", "ModelError"]
__version__ = "0.1.0"

IMPORTED_S = time.perf_counter()  # when the program began, near enough: startup_s counts from it
