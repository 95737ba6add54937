"""Where a run draws, and what a frame takes there: measured, remembered, or seen as it runs."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import itertools
import logging
import statistics
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from heimdall.analyzer.profiler import measure_render
from heimdall.app import App
from heimdall.app.options import RunOptions
from heimdall.capture import Frame
from heimdall.render import Overlay, Scene, Surface, open_surface
from heimdall.system import findings, paths
from heimdall.vocabulary.enums import PhoneView

log = logging.getLogger(__name__)

FRAMES = 30  # that a run draws until what one takes is known


@dataclass
class Canvas:
    """Where a run draws, and with what. ``lone_render_ns``: T_render of section 5.2, one frame of
    this app, nothing else running; a guess until ``seen``, where it could not be measured first."""

    surface: Surface
    scene: Scene
    overlay: Overlay
    app: App
    lone_render_ns: int = 0
    guessed: bool = False
    follows: bool = False  # the shape of the pictures: a phone is turned

    def __post_init__(self) -> None:
        self._within: tuple[int, int] | None = None  # the size that was asked for
        self.scene.world = self.app.world

    def fit(self, frame: Frame) -> None:
        """Where it ``follows``: take the shape of this picture, within the run's size as the
        picture lies, upright or across. Sides are even, as videos ask."""
        if not self.follows:
            return
        height, width = frame.image.shape[:2]
        if self._within is None:
            self._within = self.surface.size
        room = sorted(self._within, reverse=width >= height)
        scale = min(room[0] / width, room[1] / height)
        size = max(2, round(width * scale / 2) * 2), max(2, round(height * scale / 2) * 2)
        if size != self.surface.size:
            self.surface.resize(size)

    def measure(self, frame: Frame, *, soon: bool, guess: bool) -> None:
        """Find T_render out. ``soon``: take what was measured before, if it was; where that is not
        known, ``guess`` by as few frames as will do."""
        if soon and (known := findings.read(self._path, _positive, "it is measured again")):
            self.lone_render_ns = known
            return
        draw = self._drawing(frame)
        draw()  # compiles shaders
        try:
            if guess:
                self.lone_render_ns, self.guessed = measure_render(draw, runs=1), True
                return
            if self.scene.settle():  # models are loaded beside the frames, which take longer then
                draw()
            self.lone_render_ns = measure_render(draw)
            if soon:
                self._remember()
        finally:
            if self.app.world is not None:
                self.app.world.forget()

    def close(self) -> None:
        """Load nothing more, and give the surface back."""
        self.scene.close()
        self.surface.close()

    def seen(self, render_ns: Sequence[int]) -> bool:
        """Frames took so long that were drawn while nothing else used the GPU. True: there are
        enough of them, and T_render is known now, for later starts, too."""
        if len(render_ns) < FRAMES:
            return False
        self.lone_render_ns = round(statistics.median(render_ns[-FRAMES:]))
        self.guessed = False
        self._remember()
        return True

    def _remember(self) -> None:
        findings.write(self._path, self.lone_render_ns, "it is measured again")

    @property
    def _path(self) -> Path:
        """Where T_render is kept for this app, as it is now, on this renderer at this size."""
        what = hashlib.sha256(_source(type(self.app)))
        size, renderer = self.surface.size, self.surface.renderer
        what.update(f"{type(self.app).__qualname__} {size} {renderer}".encode())
        if self.surface.see_through:  # it draws no camera picture
            what.update(b"content")
        return paths.cache_dir() / "renders" / f"{what.hexdigest()[:24]}.json"

    def _drawing(self, frame: Frame) -> Callable[[], None]:
        app, scene, number = self.app, self.scene, itertools.count()

        def draw() -> None:
            # The pose is not known yet: what stands in the world is measured as if it were.
            camera = app.world.rehearse(frame.camera) if app.world is not None else frame.camera
            scene.begin(frame.image, frame.sequence, camera, next(number) / app.fps)
            try:
                app.draw(scene)
            except (Exception, SystemExit) as error:
                # The run goes on without it, and says so (Callbacks); here it only costs accuracy.
                log.debug("draw failed while measuring: %s", error)
            scene.render()
            self.surface.finish()

        return draw


def open_canvas(
    app: App,
    options: RunOptions,
    own: Callable[[tuple[int, int]], Surface] | None,
    confined: AbstractContextManager[object],
    prioritized: bool = True,
) -> Canvas:
    """Where the app is drawn: by the GPU, that is, ``confined`` to where a software GPU's threads
    belong. ``own``: opens the host's surface of a size. ``prioritized``: the driver is asked to
    draw before it runs networks."""
    size = options.size or app.size
    with confined:
        if own is not None:
            surface = own(size)
        else:
            title = app.title or app.name
            headless = options.windowless
            surface = open_surface(size, headless=headless, title=title, high=prioritized)
        surface.see_through = options.phone == PhoneView.OVERLAY
        surface.finish()
    with contextlib.ExitStack() as stack:
        stack.callback(surface.close)
        scene = Scene(surface)
        stack.callback(scene.close)
        canvas = Canvas(surface, scene, Overlay(surface), app)
        stack.pop_all()
    return canvas


def _source(app: type[App]) -> bytes:
    try:
        return Path(inspect.getfile(app)).read_bytes()
    except (OSError, TypeError):  # typed in
        return b""


def _positive(value: object) -> int:
    if not isinstance(value, int) or value <= 0:
        raise ValueError(f"{value!r} is no time")
    return value
