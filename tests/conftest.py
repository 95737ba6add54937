"""Shared by all tests: a cache of their own, so that nothing of the user's is read or written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

import heimdall  # noqa: F401  # before onnxruntime: libraries do not report home then

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime as ort

    from heimdall.models.base import Network, Pipeline


# An example takes as long as the machine is busy: that says nothing about the code.
settings.register_profile("heimdall", deadline=None, max_examples=30)
settings.register_profile("thorough", deadline=None)  # of `make test-all`: a hundred examples
settings.load_profile("heimdall")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is long is slow as well: ``-m 'not slow'`` leaves out both."""
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker("slow")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["HEIMDALL_TUNE"] = "off"  # nothing is left behind in the background
    if "HEIMDALL_TEST_CACHE" in os.environ:  # kept between runs, to make them quick
        os.environ["HEIMDALL_CACHE"] = os.environ["HEIMDALL_TEST_CACHE"]
    else:
        os.environ["HEIMDALL_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def _own_cores() -> Iterator[None]:
    """A test may confine threads; the next one, and the processes it starts, must not be."""
    from heimdall.system import softgpu

    with softgpu.restored_afterwards():
        yield


@pytest.fixture(scope="session")
def assets() -> Path:
    from heimdall.system import paths

    return paths.ASSETS


@pytest.fixture(scope="session")
def run_python() -> Callable[..., Any]:
    """``run_python(code)``: what the code prints as JSON on its last line, in a process of its own:
    there threads may be confined, and priorities lowered, for good."""

    def in_own_process(code: str, **more: Any) -> Any:
        command = [sys.executable, "-c", textwrap.dedent(code)]
        more = {"timeout": 120, **more}
        done = subprocess.run(command, capture_output=True, text=True, **more)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return in_own_process


@pytest.fixture(scope="session")
def run() -> Callable[..., Any]:
    """``run(pipeline, image, **options)``: the final result of a real pipeline, every stage
    through onnxruntime, as the engines would."""
    import onnxruntime as ort

    from heimdall.graph.graph import load_graph
    from heimdall.models.walk import Tensors, run_pipeline

    settings = ort.SessionOptions()
    settings.intra_op_num_threads = 1
    sessions: dict[str, ort.InferenceSession] = {}

    def session(network: Network) -> ort.InferenceSession:
        if repr(network) not in sessions:
            model = load_graph(network.path, network.shapes or None).serialized
            sessions[repr(network)] = ort.InferenceSession(
                model, settings, providers=["CPUExecutionProvider"]
            )
        return sessions[repr(network)]

    def through_onnxruntime(pipeline: Pipeline, image: np.ndarray, **options: Any) -> Any:
        def infer(stage: int, inputs: Tensors) -> Tensors:
            opened = session(pipeline.networks[stage])
            names = [output.name for output in opened.get_outputs()]
            return dict(zip(names, opened.run(None, dict(inputs)), strict=True))

        graphs = [load_graph(each.path, each.shapes or None) for each in pipeline.networks]
        pipeline.bind(graphs)
        return run_pipeline(pipeline, image, infer, options)

    return through_onnxruntime
