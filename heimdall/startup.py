"""Opening everything a run needs, in an order that finds mistakes before slow work begins.

Pipelines and the source first (a wrong name fails at once), then the devices inside the
software GPU's confinement, then networks and their profiles.
"""

from __future__ import annotations

import contextlib
import logging
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import cv2  # imported before confinement, so that its threads are not the GPU's

from heimdall import paths, softgpu
from heimdall.analyzer.graph import Graph, load_graph
from heimdall.analyzer.profile import to_stage_plan
from heimdall.analyzer.store import load_or_measure
from heimdall.app import DNN, App
from heimdall.capture import Frame, Source, open_source
from heimdall.coordinator.events import GPU
from heimdall.deployment import Deployment
from heimdall.engine import open_engine
from heimdall.engine.base import Engine
from heimdall.errors import DeviceError
from heimdall.models.base import Pipeline
from heimdall.models.catalog import open_pipeline
from heimdall.options import RunOptions
from heimdall.render import Overlay, Scene, Surface, open_surface

log = logging.getLogger(__name__)

FIRST_FRAME_TIMEOUT_S = 10.0
RENDER_RUNS = 12


@dataclass
class Stage:
    """What a run runs on."""

    fps: float
    source: Source
    first_frame: Frame
    surface: Surface
    scene: Scene
    overlay: Overlay
    gpu: Engine
    cpu: Engine
    software: softgpu.SoftwareGpu | None  # None: a real GPU
    deployments: dict[str, Deployment]
    lone_render_ns: int  # one frame of this app, nothing else running

    @property
    def gpu_name(self) -> str:
        return str(self.gpu.describe()["device"])

    def describe_devices(self) -> dict[str, Any]:
        """The ``device`` entry of the run summary."""
        return {
            "gpu": self.gpu_name,
            "cpu": self.cpu.describe()["device"],
            "software_gpu": self.software is not None,
            "mode": self.software.describe() if self.software else "hardware",
            "renderer": self.surface.renderer,
        }


Progress = Callable[[str, int, int], None]  # what is being done, steps done, steps in all


def no_progress(what: str, done: int, total: int) -> None:
    """Report nothing."""


@contextlib.contextmanager
def start(app: App, options: RunOptions, progress: Progress = no_progress) -> Iterator[Stage]:
    """Open source, devices and networks for ``app``; close them when the block ends.

    Raises HeimdallError, saying what is missing and what to do, before anything is drawn.
    """
    fps = options.fps or app.fps
    with contextlib.ExitStack() as stack:
        pipelines = {dnn.name: _pipeline(dnn) for dnn in app.dnns}
        source = stack.enter_context(contextlib.closing(_open_source(app, options)))
        graphs = _load_graphs(pipelines, progress)
        software, gpu, surface = _open_devices(app, options, stack)
        cpu = open_engine("onnxruntime")
        stack.callback(cpu.close)
        first_frame = _first_frame(source)
        scene, overlay = Scene(surface), Overlay(surface)
        lone_render_ns = _measure_render(app, surface, scene, first_frame)
        deployments = {}
        for dnn in app.dnns:
            deployment = Deployment(dnn, pipelines[dnn.name], graphs[dnn.name], cpu)
            stack.callback(deployment.close)
            deployments[dnn.name] = deployment
        mode = software.describe() if software else "hardware"
        _place(deployments, gpu, cpu, mode, round(1e9 / fps) - lone_render_ns, progress)
        yield Stage(
            fps,
            source,
            first_frame,
            surface,
            scene,
            overlay,
            gpu,
            cpu,
            software,
            deployments,
            lone_render_ns,
        )


def _pipeline(dnn: DNN) -> Pipeline:
    if isinstance(dnn.model, Pipeline):
        return dnn.model
    return open_pipeline(dnn.model, **dnn.options)


def _open_source(app: App, options: RunOptions) -> Source:
    clip = paths.ASSETS / "media" / app.clip
    if options.source is None and options.headless:
        return open_source(str(clip))  # reproducible, and nobody's camera goes on unasked
    return open_source(options.source, size=options.size or app.size, default=clip)


def _first_frame(source: Source) -> Frame:
    frame = source.wait_first(FIRST_FRAME_TIMEOUT_S)
    if frame is None:
        raise DeviceError(
            f"{source.describe()} gave no picture within {FIRST_FRAME_TIMEOUT_S:.0f} s"
            + (f": {source.error}" if source.error else "")
        )
    return frame


def _load_graphs(pipelines: Mapping[str, Pipeline], progress: Progress) -> dict[str, list[Graph]]:
    total = sum(len(pipeline.networks) for pipeline in pipelines.values())
    graphs: dict[str, list[Graph]] = {}
    done = 0
    for name, pipeline in pipelines.items():
        graphs[name] = []
        for network in pipeline.networks:
            progress("reading networks", done, total)
            graphs[name].append(load_graph(network.path, network.shapes or None))
            done += 1
    progress("reading networks", total, total)
    return graphs


def _open_devices(
    app: App, options: RunOptions, stack: contextlib.ExitStack
) -> tuple[softgpu.SoftwareGpu | None, Engine, Surface]:
    """The GPU engine and the surface, created where the software GPU's threads belong."""
    softgpu.precise_timers()
    cv2.setNumThreads(1)  # pictures are small, and the cores have other work
    software: softgpu.SoftwareGpu | None = softgpu.plan(
        cores=options.gpu_cores, realtime=options.realtime
    )
    assert software is not None
    with software.confined():
        gpu = open_gpu(options.device)
        stack.callback(gpu.close)
        surface = open_surface(
            options.size or app.size, headless=options.headless, title=app.title or app.name
        )
        stack.enter_context(surface)
        surface.finish()
    if gpu.hardware:
        software.release()
        software = None
    return software, gpu, surface


def open_gpu(device: str | None) -> Engine:
    """The OpenCL engine; without any OpenCL, onnxruntime takes the GPU's role too.

    Raises DeviceError when a device was asked for by name and is not there.
    """
    if device == "onnxruntime":
        return open_engine("onnxruntime", processor=GPU)
    try:
        return open_engine("opencl", device=device)
    except DeviceError as error:
        if device is not None:
            raise
        log.warning("%s. Networks run on the CPU by onnxruntime instead.", error)
        return open_engine("onnxruntime", processor=GPU)


def _measure_render(app: App, surface: Surface, scene: Scene, frame: Frame) -> int:
    """T_render of section 5.2: one frame of this app at this size, alone (median, ns)."""
    times = []
    for run in range(RENDER_RUNS):
        scene.load(frame.image, run)
        began_ns = time.perf_counter_ns()
        scene.begin(frame.image, run)
        try:
            app.draw(scene)
        except Exception as error:
            # The run goes on without it, and says so (Callbacks); here it only costs accuracy.
            log.debug("draw failed while measuring: %s", error)
        scene.render()
        surface.finish()
        times.append(time.perf_counter_ns() - began_ns)
    return round(statistics.median(times[RENDER_RUNS // 3 :]))


def _place(
    deployments: Mapping[str, Deployment],
    gpu: Engine,
    cpu: Engine,
    mode: str,
    gap_ns: int,
    progress: Progress,
) -> None:
    """Load every network on the GPU, profile what is not profiled yet, and make the plans."""
    total = sum(len(deployment.graphs) for deployment in deployments.values())
    done = 0
    for deployment in deployments.values():
        forced = deployment.dnn.force_fallback
        networks = []
        for graph in deployment.graphs:
            progress("compiling networks", done, total)
            networks.append(gpu.load(graph, force_fallback=forced))
            done += 1
        deployment.place(GPU, networks)
    progress("compiling networks", total, total)
    for deployment in deployments.values():
        stages = [
            to_stage_plan(
                load_or_measure(
                    network.graph,
                    gpu,
                    cpu,
                    network=network,
                    mode=mode,
                    force_fallback=deployment.dnn.force_fallback,
                    progress=progress,
                ),
                gap_ns,
            )
            for network in deployment.networks(GPU)
        ]
        deployment.complete(stages)
