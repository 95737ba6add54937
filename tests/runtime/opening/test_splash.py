"""What the window shows while networks load."""

from __future__ import annotations

import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor

import numpy as np
import pytest

from heimdall.app import App
from heimdall.capture import Frame
from heimdall.errors import DeviceError
from heimdall.render import Close, Key, Overlay, Scene, open_surface
from heimdall.runtime.opening.canvas import Canvas
from heimdall.runtime.opening.splash import Splash


class Clip:
    """A source of grey frames."""

    live = False

    def latest(self) -> Frame:
        return Frame(np.full((360, 640, 3), 200, np.uint8), 1, 0)


@pytest.fixture
def splash(monkeypatch):
    """A splash on a headless surface, what it passed on, and what its window would report."""
    try:
        surface = open_surface((640, 360), headless=True)
    except DeviceError as error:
        pytest.skip(str(error))
    told: list[tuple[str, int, int]] = []
    events: list = []
    with surface:
        monkeypatch.setattr(surface, "poll", lambda: events)
        frame = Frame(np.full((360, 640, 3), 128, np.uint8), 0, 0)
        canvas = Canvas(surface, Scene(surface), Overlay(surface), App())
        shown = Splash(canvas, Clip(), frame, lambda *step: told.append(step))  # type: ignore[arg-type]
        shown.surface, shown.told, shown.events = surface, told, events  # type: ignore[attr-defined]
        yield shown


def test_progress_is_drawn_over_the_camera_picture_and_passed_on(splash):
    splash("compiling networks", 3, 10)
    picture = splash.surface.read()
    assert (picture[:100] == 128).all()
    assert (picture[170:190, 200:440] < 60).any()
    assert splash.told == [("compiling networks", 3, 10)]


@pytest.mark.parametrize("event", [Close(), Key("escape", True)])
def test_the_window_can_be_closed_while_networks_load(splash, event):
    splash.events.append(event)
    with pytest.raises(KeyboardInterrupt):
        splash("compiling networks", 0, 10)


def test_a_display_that_goes_away_while_networks_load_is_an_error(splash):
    splash.events.append(Close("the display has gone away"))
    with pytest.raises(DeviceError, match="has gone away before the first frame"):
        splash("compiling networks", 0, 10)


def test_steps_of_other_threads_are_only_passed_on(splash):
    thread = threading.Thread(target=splash, args=("compiling networks", 1, 10))
    thread.start()
    thread.join()
    assert len(splash.told) == 1
    assert (splash.surface.read() == 0).all()


def test_many_steps_draw_a_few_times(splash, monkeypatch):
    drawn: list = []
    monkeypatch.setattr(splash.surface, "present", lambda: drawn.append(True))
    monkeypatch.setattr("heimdall.runtime.opening.splash.time.perf_counter", lambda: 7.0)
    for step in range(100):
        splash("compiling networks", step, 100)
    assert len(drawn) == 1
    assert len(splash.told) == 100


def test_the_first_picture_comes_before_any_step(splash):
    splash.show()
    assert (splash.surface.read()[:100] == 128).all()
    assert splash.shown_s > 0
    assert splash.told == []


def test_the_picture_moves_while_another_thread_works(splash, monkeypatch):
    drawn: list = []
    monkeypatch.setattr(splash.surface, "present", lambda: drawn.append(True))
    splash._source.live = True  # a camera
    with ThreadPoolExecutor(1) as pool:

        def work() -> str:
            while len(drawn) < 3:
                time.sleep(0.001)
            return "done"

        assert splash.wait(pool.submit(work)) == "done"
    assert (splash.surface.read()[:100] == 200).all()


def test_what_another_thread_raises_is_raised_here(splash):
    with ThreadPoolExecutor(1) as pool, pytest.raises(DeviceError, match="none"):
        splash.wait(pool.submit(_fail))


def _fail() -> None:
    raise DeviceError("none")


def test_who_loads_for_a_window_that_was_closed_stops_at_the_next_step(splash):
    begun, closed = threading.Event(), threading.Event()

    def load():
        splash("loading networks on the CPU", 0, 9)
        begun.set()
        closed.wait(30)
        splash("loading networks on the CPU", 1, 9)

    with ThreadPoolExecutor(1) as beside:
        loading = beside.submit(load)
        assert begun.wait(30)
        splash.events.append(Close())
        with pytest.raises(KeyboardInterrupt):
            splash.wait(loading)
        closed.set()
        with pytest.raises(CancelledError):
            loading.result(30)
    assert splash.told == [("loading networks on the CPU", 0, 9)]
