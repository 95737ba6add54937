"""What is loaded: models, and rooms for their light, by file; read on a thread of its own and sent
to the GPU in steps, a little before each frame."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from heimdall.capture.device_pose import DevicePose
from heimdall.errors import AppError, unknown
from heimdall.render.content.figures import Figures
from heimdall.render.content.light import Light, Room, as_told, usual_room
from heimdall.render.content.model import Model
from heimdall.render.content.reader import Reader
from heimdall.render.content.sending import Picture, Sent, send, sent_picture
from heimdall.render.content.shaders_kept import have_kept
from heimdall.render.programs import Programs
from heimdall.render.surface import Surface
from heimdall.system.paths import ASSETS

FOLDER = ASSETS / "content"
_A_FRAME_S = 0.001  # for sending, of the time before a frame
_LARGEST = (512, 2048)  # texels of a texture's side: on software, on a GPU
_PATIENCE_S = 30.0
_LOOK = 6  # every so many pictures the light is looked at
_MOST_BYTES = 512 << 20  # of models, until those that were not asked for lately are forgotten
_LATELY = 60  # pictures


class _Order:
    """Something that is read, then sent: a model, or a room and its reflections."""

    def __init__(self, reading: Future[Any], begin: Callable[[Any], Iterator[Any]]):
        self.reading, self._begin = reading, begin
        self._steps: Iterator[Any] | None = None
        self._failed_at: TracebackType | None = None
        self.ready: Any = None  # Sent, or (Room, Picture)
        self.used = 0  # the number of the picture over which it was asked for last

    @property
    def sending(self) -> bool:
        """True if ``step`` has something to do."""
        read = self.ready is None and self.reading.done()
        return read and self.reading.exception() is None

    @property
    def coming(self) -> bool:
        """True if it is not there yet, and may still come."""
        return self.ready is None and (self.sending or not self.reading.done())

    @property
    def started(self) -> bool:
        """True if some of it, not all, is on the GPU."""
        return self.ready is None and self._steps is not None

    @property
    def nbytes(self) -> int:
        """Of what is there."""
        if isinstance(self.ready, Sent):
            return self.ready.model.nbytes
        return self.ready[0].reflections.nbytes if self.ready is not None else 0

    def lights(self, picture: Picture | None) -> bool:
        """Whether these are its reflections."""
        return isinstance(self.ready, tuple) and self.ready[1] is picture

    def free(self) -> None:
        """Take it from the GPU, if it is there."""
        if self.ready is not None:
            (self.ready if isinstance(self.ready, Sent) else self.ready[1]).release()

    def step(self) -> None:
        """Send a little of it."""
        if self._steps is None:
            self._steps = self._begin(self.reading.result())
        self.ready = next(self._steps)

    def get(self) -> Any:
        """It; None while it is on its way. Raises what reading it raised."""
        if self.ready is None and self.reading.done() and (error := self.reading.exception()):
            # The same exception each frame: its traceback would grow by every one of them.
            self._failed_at = self._failed_at or error.__traceback__
            raise error.with_traceback(self._failed_at)
        return self.ready


class Stock:
    """Loads what ``figures`` draws, and the light that it stands in: that of the ``environment``
    map, or a usual room's. Main thread only."""

    def __init__(self, surface: Surface, programs: Programs, figures: Figures):
        self._ctx, self._software = surface.ctx, surface.software
        self._programs, self._figures = programs, figures
        self.environment: str | Path | None = None
        self._pictures = 0
        self._driver = " ".join(self._ctx.info[each] for each in ("GL_RENDERER", "GL_VERSION"))
        self._settling = threading.Event()
        self._orders: dict[tuple[str, Path], _Order] = {}
        self._left: list[_Order] = []  # that nothing asks for any more
        self._reader = Reader()
        self._found = cache(_found)  # each file is looked up once

    def model(self, file: str | Path) -> Sent | None:
        """The model in a file, or one of the bundled; None while it is being loaded. Raises
        AppError for a file that is not there, ModelError for one that cannot be drawn."""
        if not self._orders:
            self.room(self.environment)  # ahead of models, which are rehearsed in it
        path, largest = self._found(file, ".glb"), _LARGEST[not self._software]
        return self._order(
            "model",
            path,
            partial(_read_model, path, largest),
            self._send_model,
            partial(self._compile, path),
        ).get()

    @property
    def loading(self) -> list[str]:
        """The names of the files that are on their way."""
        return [
            path.name for (_, path), order in self._orders.items() if order.coming and path.name
        ]

    def room(self, file: str | Path | None) -> tuple[Room, Picture] | None:
        """The light of an environment map; None: the usual room's."""
        if file is None:
            return self._order("room", Path(), usual_room, self._send_room).get()
        path = self._found(file, ".hdr")
        return self._order("room", path, partial(_read_room, path), self._send_room).get()

    def lit(self) -> bool:
        """Whether there is light; until an environment is loaded, it is the one before."""
        found, before = self.room(self.environment), self._figures.light
        if found is not None and (before is None or found[0] is not before[0].room):
            self._figures.light = Light(found[0]), found[1]
            if before is not None:
                self._figures.light[0].estimated = before[0].estimated
        return self._figures.light is not None

    def see(self, picture: np.ndarray, *, estimate: bool) -> None:
        """A new camera picture, BGR: there is time to load something, and it tells of the light."""
        if not (self._orders or self._left):
            return
        self._forget()
        self._advance()
        self._pictures += 1
        if estimate and self._figures.light is not None and self._pictures % _LOOK == 1:
            self._figures.light[0].see(picture)

    def unload(self, file: str | Path) -> None:
        """Forget a model or environment map. Raises AppError for the map that is the light."""
        path = self._found(file, ".glb")
        if self.environment is not None and path == self._found(self.environment, ".hdr"):
            raise AppError(f"{path.name} is the environment: set another one, or None, before")
        for kind in ("model", "room"):
            order = self._orders.pop((kind, path), None)
            if order is not None:
                self._left.append(order)

    def _forget(self) -> None:
        """Free what was unloaded and, where there is more than can be kept, what was not asked for
        for the longest time. Between frames."""
        sizes = {key: order.nbytes for key, order in self._orders.items()}
        total = sum(sizes.values())
        oldest = (
            sorted(sizes, key=lambda key: self._orders[key].used) if total > _MOST_BYTES else ()
        )
        for key in oldest:
            if total <= _MOST_BYTES or self._orders[key].used > self._pictures - _LATELY:
                break
            total -= sizes[key]
            self._left.append(self._orders.pop(key))
        light = self._figures.light
        left, self._left = self._left, []
        for order in left:
            if order.started or order.lights(light[1] if light is not None else None):
                self._left.append(order)  # not yet
            else:
                order.free()

    def told(self, said: DevicePose) -> bool:
        """What a device says of the light as the picture was taken; False: nothing."""
        if said.light is None or said.pose is None:
            return False
        if self._figures.light is not None:
            self._figures.light[0].estimated = as_told(said.light, said.pose)
        return True

    def _advance(self) -> None:
        """Send something, for about a millisecond."""
        self._reader.look()
        until_s = time.perf_counter() + _A_FRAME_S
        for order in (*self._orders.values(), *self._left):
            while order.sending:
                order.step()
                if time.perf_counter() >= until_s:
                    return

    def settle(self) -> bool:
        """Have everything that was asked for here, or what came in half a minute; False if nothing
        was on its way."""
        until_s = time.monotonic() + _PATIENCE_S
        some = False
        self._settling.set()  # waiting is shorter without a process that draws first
        for order in self._orders.values():
            if order.coming:
                some = True
                wait([order.reading], max(until_s - time.monotonic(), 0.01))
                while order.sending:
                    order.step()
        self._settling.clear()
        return some

    def end(self) -> None:
        """Load nothing more."""
        self._settling.set()
        self._reader.end()

    def close(self) -> None:
        """``end``, and wait for what is being loaded."""
        self.end()
        self._reader.close()

    def _order(
        self,
        kind: str,
        path: Path,
        read: Callable[[], Any],
        begin: Callable[[Any], Iterator[Any]],
        finish: Callable[[], object] = lambda: None,
    ) -> _Order:
        key = (kind, path)
        if key not in self._orders:
            self._orders[key] = _Order(self._reader.submit(read, finish), begin)
        self._orders[key].used = self._pictures
        return self._orders[key]

    def _compile(self, path: Path) -> None:
        if self._software:
            have_kept(path, self._driver, self._settling)

    def _send_model(self, model: Model) -> Iterator[Sent | None]:
        for step in send(model, self._ctx, self._programs, software=self._software):
            if step is not None and self.lit():
                yield from self._figures.rehearse(step)
            yield step

    def _send_room(self, room: Room) -> Iterator[tuple[Room, Picture] | None]:
        for step in sent_picture(room.reflections, self._ctx, software=self._software):
            yield None if step is None else (room, step)


def _found(file: str | Path, kind: str) -> Path:
    """A file, or the bundled one of this kind with that name."""
    path = Path(file).expanduser()
    if path.is_file():
        return path.resolve()
    bundled = {each.name for each in FOLDER.glob(f"*{kind}")}
    if path.name in bundled and path.parent == Path("."):
        return FOLDER / path.name
    raise AppError(f"no file {path}; {unknown('bundled file', path.name, bundled)}")


def _read_model(path: Path, largest: int) -> Model:
    # pydantic, which checks the file, takes as long to import as a model to load
    from heimdall.render.content.reading import read

    return read(path, largest)


def _read_room(path: Path) -> Room:
    from heimdall.render.content.environment import read_room

    return read_room(path)
