"""Opens the surface that is asked for."""

from __future__ import annotations

from heimdall.errors import ConfigError
from heimdall.render.headless import HeadlessSurface
from heimdall.render.surface import Surface
from heimdall.system import forks

_LARGEST = 16384


def open_surface(
    size: tuple[int, int],
    headless: bool = False,
    title: str = "Heimdall",
    *,
    high: bool = True,
) -> Surface:
    """A window of ``size`` pixels titled ``title``, or a headless surface of that size, which is
    of ``high`` priority where the driver has that.

    Raises ConfigError for an impossible size and DeviceError without OpenGL (3.3, or ES 3.0)
    or a display, and in a fork of a process that has used drivers.
    """
    forks.begin()
    width, height = size
    if not (1 <= width <= _LARGEST and 1 <= height <= _LARGEST):
        raise ConfigError(f"size {width}x{height}: each side must be 1 to {_LARGEST} pixels")
    if headless:
        return HeadlessSurface((width, height), high=high)
    from heimdall.render.window import WindowSurface  # glfw: only where there is a window

    return WindowSurface((width, height), title)
