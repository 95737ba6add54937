"""Contexts of high priority, where EGL has them. Here a stand-in has them, beneath which is this
machine's EGL."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from heimdall.errors import DeviceError
from heimdall.render.egl import Egl, EglContext
from heimdall.render.headless import HeadlessSurface
from heimdall.render.versions import VERSIONS
from heimdall.vocabulary.driver_priority import NOT_ASKED, DriverPriority, Level

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="EGL is for Linux")

EXTENSIONS, LEVEL, HIGH = 0x3055, 0x3100, 0x3101
GIVEN = {HIGH: Level.HIGH, 0x3102: Level.MEDIUM, 0x3103: Level.LOW, 0x3357: Level.REALTIME}


class Prioritizing:
    """EGL's functions, with EGL_IMG_context_priority. A context is said to be ``given`` (None: it
    is not said); where that is ``refused``, there is none of high priority."""

    def __init__(self, beneath: Any, given: int | None, refused: bool) -> None:
        self._beneath, self._given, self._refused = beneath, given, refused
        self.asked: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._beneath, name)

    def eglQueryString(self, display: Any, what: int) -> bytes | None:  # noqa: N802
        said: bytes | None = self._beneath.eglQueryString(display, what)
        return said and said + b" EGL_IMG_context_priority" if what == EXTENSIONS else said

    def eglCreateContext(self, display: Any, config: Any, share: Any, attributes: Any) -> Any:  # noqa: N802
        given = list(attributes)
        if LEVEL in given[::2]:
            place = 2 * given[::2].index(LEVEL)
            self.asked.append(given[place + 1])
            if self._refused:
                return None
            del given[place : place + 2]
            attributes = type(attributes)(*given)
        return self._beneath.eglCreateContext(display, config, share, attributes)

    def eglQueryContext(self, display: Any, context: Any, what: int, value: Any) -> int:  # noqa: N802
        assert what == LEVEL
        if self._given is not None:
            value._obj.value = self._given
        return int(self._given is not None)


@pytest.fixture
def egl():
    """``egl(given)``: the library with priorities; without an argument, as it is here."""

    def made(given: int | None = None, *, refused: bool = False, prioritizes: bool = True) -> Egl:
        try:
            library = Egl()
        except DeviceError as error:
            pytest.skip(str(error))
        if prioritizes:
            library.call = Prioritizing(library.call, given, refused)
        return library

    return made


def opened(egl: Egl, **how: bool) -> DriverPriority:
    """What the first context that can be had says of its priority."""
    for display in egl.displays():
        for version in VERSIONS:
            try:
                context = EglContext(egl, display, version, **how)
            except DeviceError:
                continue
            context.release()
            return context.driver_priority
    pytest.skip("no context here")


def test_a_context_is_of_high_priority_where_egl_has_that(egl):
    library = egl(HIGH)
    assert opened(library) == DriverPriority(Level.HIGH)
    assert library.call.asked == [HIGH]


@pytest.mark.parametrize("given", [0x3102, 0x3103])
def test_less_than_was_asked_for_is_told(egl, given):
    found = opened(egl(given))
    assert found == DriverPriority(GIVEN[given], f"the driver gives this user {GIVEN[given]}")


def test_a_driver_that_refuses_gives_a_usual_context(egl):
    library = egl(0x3102, refused=True)
    assert opened(library).level is Level.MEDIUM
    assert library.call.asked == [HIGH]


def test_a_driver_may_not_say_what_came_of_it(egl):
    assert opened(egl(None)).level is None


def test_more_than_was_asked_for_is_as_good(egl):
    assert opened(egl(0x3357)) == DriverPriority(Level.REALTIME)


def test_none_is_asked_for_where_that_is_not_wanted(egl):
    library = egl(0x3102)
    assert opened(library, high=False) == DriverPriority(Level.MEDIUM, NOT_ASKED.why)
    assert library.call.asked == []


def test_without_the_extension_that_is_the_reason(egl):
    library = egl(prioritizes=False)
    found = opened(library)
    if any(b"EGL_IMG_context_priority" in library.extensions(each) for each in library.displays()):
        pytest.skip("EGL has it here")
    assert found == DriverPriority(why="EGL has no EGL_IMG_context_priority")


@pytest.mark.parametrize("high", [True, False])
def test_a_headless_surface_says_what_its_context_is(egl, monkeypatch, high):
    library = egl(HIGH)
    monkeypatch.setattr("heimdall.render.headless.Egl", lambda: library)
    surface = HeadlessSurface((16, 16), high=high)
    surface.framebuffer.clear(0, 1, 0)
    assert (surface.read() == (0, 255, 0)).all()
    surface.close()
    assert surface.driver_priority.level is Level.HIGH
    assert library.call.asked == [HIGH] * high
