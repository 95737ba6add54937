"""Opening everything a run needs, in an order that finds mistakes before slow work begins.

Pipelines and the source first (a wrong name fails at once), then the devices inside the
software GPU's confinement, then networks and their profiles.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from heimdall.analyzer.partition import Cut, strategy_of
from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app import DNN, App
from heimdall.app.options import PHONE, RunOptions
from heimdall.capture import Frame, Source, open_source
from heimdall.capture.camera_files import known_camera
from heimdall.capture.pushed import PushedSource
from heimdall.capture.sound import MICROPHONE, SoundSource, open_sound
from heimdall.engine.checks import check_forced_names
from heimdall.errors import AppError, DeviceError, HeimdallError, ModelError
from heimdall.graph.graph import Graph, load_graph
from heimdall.models.base import Pipeline
from heimdall.models.catalog import comes_with_exits, open_pipeline
from heimdall.render import Surface
from heimdall.render.preview import PhoneOptions, Preview
from heimdall.runtime.execution.deployment import Deployment
from heimdall.runtime.execution.processors import Processors, open_processors
from heimdall.runtime.opening.building import Building
from heimdall.runtime.opening.canvas import Canvas, open_canvas
from heimdall.runtime.opening.placing import place_networks, place_remotely
from heimdall.runtime.opening.splash import Splash
from heimdall.runtime.session.keys import key_labels
from heimdall.schedulers import kind_of
from heimdall.system import paths, softgpu
from heimdall.system.began import IMPORTED_S
from heimdall.system.policy import parse_policy
from heimdall.system.process import give_over, restored
from heimdall.system.workers import Workers
from heimdall.vocabulary.driver_priority import DriverPriority
from heimdall.vocabulary.enums import ChunkMode, PhoneView

log = logging.getLogger(__name__)

_PYOPENCLS = "PYOPENCL_HOME"  # it sets that when it is imported, for the loader of drivers
FIRST_FRAME_TIMEOUT_S = 10.0
_ENDING_S, _INTERRUPTED_S = 10.0, 0.5  # of what is still being opened, where that is in vain

T = TypeVar("T")


@dataclass
class Setup:
    """What a run runs on."""

    fps: float
    source: Source | PushedSource
    first_frame: Frame
    canvas: Canvas | None  # None: nothing is drawn
    processors: Processors
    deployments: dict[str, Deployment]
    preview: Preview | None
    chunk_mode: str  # a ChunkMode
    building: Building | None  # of networks that are not on the GPU yet
    sound: SoundSource | None = None  # for DNNs that hear; None: none does, or there is none
    shown_s: float = 0.0  # when a picture was first seen, by ``time.perf_counter``; 0: not yet

    @property
    def lone_render_ns(self) -> int:
        """What one frame takes of the GPU."""
        return self.canvas.lone_render_ns if self.canvas else 0

    @property
    def elastic(self) -> bool:
        """True if chunks can end at any op."""
        return self.processors.gpu.cuts_at_any_op

    @property
    def gpu_name(self) -> str:
        return str(self.processors.gpu.describe()["device"])

    @property
    def driver_priorities(self) -> dict[str, DriverPriority]:
        """What drivers make of networks, and of rendering where something is drawn."""
        drawn = {"rendering": self.canvas.surface.driver_priority} if self.canvas else {}
        return {"networks": self.processors.gpu.driver_priority, **drawn}

    def describe_devices(self) -> dict[str, Any]:
        """The ``device`` entry of the run summary."""
        return {
            "gpu": self.gpu_name,
            "cpu": self.processors.cpu.describe()["device"],
            "software_gpu": self.processors.software is not None,
            "mode": self.processors.describe(),
            "renderer": self.canvas.surface.renderer if self.canvas else None,
            **({"remote": remote.address} if (remote := self.processors.remote) else {}),
            "priorities": {name: each.level for name, each in self.driver_priorities.items()},
        }


@contextlib.contextmanager
def start(
    app: App,
    options: RunOptions,
    progress: Progress = no_progress,
    *,
    place: RunContext | None = None,
) -> Iterator[Setup]:
    """Open source, devices and networks for ``app``; close them when the block ends.

    Raises HeimdallError, saying what is missing and what to do, before anything is drawn.
    """
    place = place or RunContext()
    fps = options.fps or app.fps
    with contextlib.ExitStack() as stack:
        if place.processors is None:
            stack.enter_context(ground(place.process))
        if app.world is not None and place.draws:
            stack.callback(app.world.end)
            app.world.begin()
        _admit_sound(app, options)
        exits = kind_of(options.scheduler or app.scheduler).exits
        pipelines = {dnn.name: _pipeline(dnn, app, exits) for dnn in app.dnns}
        preview = _open_preview(app, options)
        if preview is not None:
            stack.callback(preview.close)
            progress = preview.progress(progress)
        opened = place.source or _open_source(app, options, preview)
        source = stack.enter_context(contextlib.closing(opened))
        if preview is not None:
            stack.callback(preview.end)  # or its source would wait for a phone
        reading = stack.enter_context(_reading(pipelines, progress))
        if not place.beside:
            _check_graphs(app, reading.result())
        if place.processors is None:
            place = _with_processors(options, place, stack)
        assert place.processors is not None
        assert place.confined is not None
        first_frame = _first_frame(source)
        with _thread("opening") as beside:
            # The picture first; what takes long is done by another thread, and this one draws.
            canvas = splash = None
            wait = _waiting
            if place.draws:
                own, confined = place.surface, place.confined()
                canvas = open_canvas(app, options, own, confined, place.prioritized)
                canvas.follows = preview is not None and preview.pictures is not None
                stack.callback(canvas.close)
                if place.surface is None:
                    splash = progress = Splash(canvas, source, first_frame, progress)
                    wait = splash.wait
                    splash.show()
            processors = wait(beside.ask(place.processors))
            graphs = wait(reading)
            _check_graphs(app, graphs)
            if canvas is not None:
                guess = place.beside and not processors.gpu.complete
                progress("measuring the renderer", 0, 1)
                canvas.measure(first_frame, soon=place.beside, guess=guess)
                progress("measuring the renderer", 1, 1)
            deployments = {}
            for dnn in app.dnns:
                deployment = Deployment(dnn, pipelines[dnn.name], graphs[dnn.name], processors.cpu)
                stack.callback(deployment.close)
                deployments[dnn.name] = deployment
            mode = _chunk_mode(options, processors)
            cut = Cut(_gap_ns(fps, canvas), strategy_of(mode))
            placing = deployments, processors, cut, progress, options, place.beside
            if place.beside:
                building = wait(beside.ask(place_networks, *placing))
            else:  # networks are measured: nothing else may be drawn meanwhile
                building = place_networks(*placing)
        if building is not None:
            stack.callback(building.close)
        if processors.remote is not None:
            place_remotely(deployments, processors.remote, asked=options.remote is not None)
        yield Setup(
            fps,
            source,
            first_frame,
            canvas,
            processors,
            deployments,
            preview,
            mode,
            building,
            _open_sound(app, options, place.process, preview, stack),
            splash.shown_s if splash else 0.0,
        )


def _with_processors(
    options: RunOptions, place: RunContext, stack: contextlib.ExitStack
) -> RunContext:
    """The place of a run that shares its processors with no other; ``stack`` closes them."""
    software = confinement(options, place.process)
    stack.enter_context(softgpu.restored_afterwards(software))

    def opened() -> Processors:
        opening = open_processors(
            options.device,
            software,
            soon=place.beside,
            remote=options.remote,
            prioritized=place.prioritized,
        )
        return stack.enter_context(opening)

    return replace(place, processors=opened, confined=software.confined)


def _waiting(future: Future[T]) -> T:
    return future.result()


def _gap_ns(fps: float, canvas: Canvas | None) -> int:
    """What a frame leaves of its interval."""
    lone_render_ns = canvas.lone_render_ns if canvas else 0
    gap_ns = round(1e9 / fps) - lone_render_ns
    if gap_ns <= 0:
        log.warning(
            "a frame takes %.1f ms to draw, more than %g frames a second allow: one op a gap; "
            "draw a smaller picture (size), or fewer of them (fps)",
            lone_render_ns / 1e6,
            fps,
        )
    return gap_ns


@dataclass(frozen=True)
class RunContext:
    """Where a run takes place. ``process``: the whole process is there for it, and may be set so;
    ``draws``: pictures are drawn, by ``surface`` where the host has one. ``source``: one that is
    open already; it is closed with the run. ``processors`` gives those of others, and the
    process is theirs then, too; ``confined`` is as theirs. ``beside``: networks may be built
    beside the first frames. ``prioritized``: drivers are asked to draw before they run networks.
    ``began_s``: from when its start is counted, by ``perf_counter``; the program's own by default.
    """

    process: bool = True
    draws: bool = True
    surface: Callable[[tuple[int, int]], Surface] | None = None
    source: PushedSource | None = None
    processors: Callable[[], Processors] | None = None
    confined: Callable[[], contextlib.AbstractContextManager[object]] | None = None
    beside: bool = False
    prioritized: bool = True
    began_s: float = IMPORTED_S


@contextlib.contextmanager
def ground(process: bool) -> Iterator[None]:
    """What is process-wide: set for frames if the ``process`` is there for them, until the block
    ends; else left alone."""
    before = os.environ.get(_PYOPENCLS)
    with restored():
        if process:
            give_over()
        try:
            yield
        finally:
            if before is None:
                os.environ.pop(_PYOPENCLS, None)


def confinement(options: RunOptions, process: bool) -> softgpu.SoftwareGpu:
    """How a software GPU would be kept apart from everything else."""
    return softgpu.plan(
        cores=options.gpu_cores,
        realtime=options.realtime,
        confine=process,
        policy=parse_policy(options.gpu_policy) if options.gpu_policy else None,
    )


def _pipeline(dnn: DNN, app: App, exits: bool) -> Pipeline:
    """``exits``: with early exits, unless the app says otherwise of a network that has some."""
    if not isinstance(dnn.model, Pipeline):
        beside = _folder_of(app) / dnn.model
        model = beside if dnn.model.endswith(".onnx") and beside.is_file() else dnn.model
        own = {"exits": True} if exits and comes_with_exits(str(model)) else {}
        return open_pipeline(model, **{**own, **dnn.pipeline_options})
    if not getattr(dnn.model, "networks", ()):
        kind = type(dnn.model).__name__
        raise AppError(f"DNN {dnn.name!r}: {kind}.networks must hold a Network for each stage")
    return dnn.model


def _folder_of(app: App) -> Path:
    """Where an app's file is; one that was typed in has none."""
    try:
        return Path(inspect.getfile(type(app))).parent
    except (OSError, TypeError):
        return Path()


def _chunk_mode(options: RunOptions, processors: Processors) -> str:
    """The static chunks are all that an engine can run for which each range of ops needs a
    session of its own, as onnxruntime does: the elastic mode cuts anywhere. On two cores, nanodet
    beside three others came to 0.5 inferences a second so, and to 5 with static chunks."""
    gpu = processors.gpu
    if not gpu.cuts_at_any_op and options.mode == ChunkMode.ELASTIC:
        log.warning("%s plays the GPU: chunks are those of the static partition", gpu.name)
        return ChunkMode.STATIC
    return options.mode


def _open_preview(app: App, options: RunOptions) -> Preview | None:
    """At once, so that a port in use is found early, and the page shows how loading goes."""
    if options.serve is None:
        return None
    phone = None
    if options.phone:
        size = options.size or app.size
        overlay = options.phone == PhoneView.OVERLAY
        hears = any(dnn.hears for dnn in app.dnns) and options.sound in (None, PHONE)
        page = options.certificate, options.turn
        phone = PhoneOptions(options.by_phone, size, overlay, *page, sound=hears)
    return Preview(options.serve, app.title or app.name, key_labels(app), phone)


def _open_source(app: App, options: RunOptions, preview: Preview | None) -> Source:
    if preview is not None and preview.pictures is not None:
        pictures = preview.pictures
        return Source(lambda: pictures, PHONE, camera=known_camera(PHONE))
    clip = paths.ASSETS / "media" / app.clip
    if options.source is None and options.headless:
        return open_source(str(clip))  # reproducible, and no camera is turned on unasked
    size, fps = options.size or app.size, options.fps or app.fps
    return open_source(options.source, size=size, camera_fps=fps, default=clip)


def _admit_sound(app: App, options: RunOptions) -> None:
    """Of the app's DNNs, those for runs with sound are there in such runs alone: in others they
    would be profiled and take memory in vain, and no microphone is turned on for them."""
    if app.sound_dnns:
        own = [dnn for dnn in app.dnns if dnn not in app.sound_dnns]
        more = app.sound_dnns if options.sound is not None else ()
        app.dnns = (*own, *more)  # type: ignore[misc]  # of this run


def _open_sound(
    app: App,
    options: RunOptions,
    process: bool,
    preview: Preview | None,
    stack: contextlib.ExitStack,
) -> SoundSource | None:
    """What is to be heard; where nothing is said and a user is there, the microphone of the phone
    or of the system. An app goes on without one, and says so."""
    if not any(dnn.hears for dnn in app.dnns):
        if options.sound is not None:
            log.warning("no DNN of %s hears: sound %s is not used", app.name, options.sound)
        return None
    if preview is not None and (phone := preview.sound) is not None:
        sound = SoundSource(lambda: phone, PHONE)
        return stack.enter_context(contextlib.closing(sound))
    if options.sound is None and (options.headless or not process):
        return None  # no microphone is turned on unasked, nor in somebody else's program
    try:
        sound = open_sound(options.sound or MICROPHONE)
    except HeimdallError as error:
        if options.sound is not None:
            raise
        log.warning("%s hears nothing: %s", app.name, error)
        return None
    return stack.enter_context(contextlib.closing(sound))


def _first_frame(source: Source | PushedSource) -> Frame:
    frame = source.wait_first(FIRST_FRAME_TIMEOUT_S)
    if frame is None:
        raise DeviceError(
            f"{source.describe()} gave no picture within {FIRST_FRAME_TIMEOUT_S:.0f} s"
            + (f": {source.error}" if source.error else "")
        )
    return frame


@contextlib.contextmanager
def _reading(
    pipelines: Mapping[str, Pipeline], progress: Progress
) -> Iterator[Future[dict[str, list[Graph]]]]:
    """Read networks in a thread of its own, for drivers are tried meanwhile, in processes."""
    with _thread("reading") as thread:
        yield thread.ask(_load_graphs, pipelines, progress)


@contextlib.contextmanager
def _thread(name: str) -> Iterator[Workers]:
    """For what takes long. The user who has had enough does not wait for it: it may be loading
    code, which nothing ends."""
    thread, patience_s = Workers(name), _ENDING_S
    try:
        yield thread
    except KeyboardInterrupt:
        patience_s = _INTERRUPTED_S
        raise
    finally:
        thread.close(patience_s)


def _check_graphs(app: App, graphs: Mapping[str, Sequence[Graph]]) -> None:
    for dnn in app.dnns:
        check_forced_names(graphs[dnn.name], dnn.force_fallback)


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
        _bind(name, pipeline, graphs[name])
    progress("reading networks", total, total)
    return graphs


def _bind(name: str, pipeline: Pipeline, graphs: list[Graph]) -> None:
    try:
        pipeline.bind(graphs)
    except ModelError as error:
        raise ModelError(f"DNN {name!r}: {error}") from error
