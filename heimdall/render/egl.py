"""GL contexts without a display server, by EGL: a GPU's own device first, in ctypes.

moderngl's EGL backend makes desktop contexts on the first device only. Boards have GPUs whose
desktop GL ends at 3.1 while their OpenGL ES is at 3.0 or later; there both are asked of a device
before the next one, which may be a software renderer.

Contexts are of high priority where EGL has EGL_IMG_context_priority: frames before networks.
NVIDIA's realtime level, for the one compositor of a headset, is not asked for.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heimdall.errors import DeviceError
from heimdall.render.versions import Version
from heimdall.vocabulary.driver_priority import NOT_ASKED, DriverPriority, Level

Loader = Callable[[str], int | None]
# GL functions are __stdcall on 32-bit Windows; elsewhere both conventions are one.
KIND: Any = getattr(ctypes, "WINFUNCTYPE", ctypes.CFUNCTYPE)

_NONE = 0x3038
_EXTENSIONS = 0x3055
_HEIGHT, _WIDTH = 0x3056, 0x3057
_SURFACE_TYPE, _PBUFFER_BIT = 0x3033, 0x1
_RENDERABLE_TYPE, _OPENGL_BIT, _OPENGL_ES3_BIT = 0x3040, 0x8, 0x40
_OPENGL_ES_API, _OPENGL_API = 0x30A0, 0x30A2
_MAJOR, _MINOR = 0x3098, 0x30FB
_PROFILE_MASK, _CORE_PROFILE = 0x30FD, 0x1
_PLATFORM_DEVICE, _PLATFORM_SURFACELESS = 0x313F, 0x31DD
_PRIORITY, _PRIORITY_LEVEL = "EGL_IMG_context_priority", 0x3100
_LEVELS = {0x3101: Level.HIGH, 0x3102: Level.MEDIUM, 0x3103: Level.LOW, 0x3357: Level.REALTIME}
_HIGH = 0x3101
_ERRORS = {
    0x3001: "EGL_NOT_INITIALIZED",
    0x3002: "EGL_BAD_ACCESS",
    0x3003: "EGL_BAD_ALLOC",
    0x3004: "EGL_BAD_ATTRIBUTE",
    0x3005: "EGL_BAD_CONFIG",
    0x3009: "EGL_BAD_MATCH",
    0x300C: "EGL_BAD_PARAMETER",
}
_MOST_DEVICES = 32


@dataclass(frozen=True)
class Display:
    """Something that EGL draws on: ``name`` for people, and EGL's handle."""

    name: str
    handle: int


class Egl:
    """The EGL library, its functions declared. Raises DeviceError where there is none."""

    def __init__(self) -> None:
        library = _library()
        if library is None:
            raise DeviceError("libEGL.so.1 is not installed")
        pointer, number = ctypes.c_void_p, ctypes.c_int
        for name, result, *arguments in (
            ("eglGetError", number),
            ("eglQueryString", ctypes.c_char_p, pointer, number),
            ("eglGetDisplay", pointer, pointer),
            ("eglInitialize", number, pointer, pointer, pointer),
            ("eglBindAPI", number, ctypes.c_uint),
            ("eglChooseConfig", number, pointer, pointer, pointer, number, pointer),
            ("eglCreateContext", pointer, pointer, pointer, pointer, pointer),
            ("eglQueryContext", number, pointer, pointer, number, pointer),
            ("eglDestroyContext", number, pointer, pointer),
            ("eglCreatePbufferSurface", pointer, pointer, pointer, pointer),
            ("eglDestroySurface", number, pointer, pointer),
            ("eglMakeCurrent", number, pointer, pointer, pointer, pointer),
        ):
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        self.call: Any = library
        self.loader = loader_of(library)

    def displays(self) -> Iterator[Display]:
        """Devices in EGL's order, then Mesa without any surface, then whatever is the default."""
        known = self.call.eglQueryString(None, _EXTENSIONS) or b""
        if b"EGL_EXT_platform_base" in known:
            if b"EGL_EXT_platform_device" in known:
                for number, device in enumerate(self._devices()):
                    yield from self._display(f"EGL device {number}", _PLATFORM_DEVICE, device)
            if b"EGL_MESA_platform_surfaceless" in known:
                yield from self._display("surfaceless EGL", _PLATFORM_SURFACELESS, None)
        if handle := self.call.eglGetDisplay(None):
            yield Display("EGL's default display", handle)

    def extensions(self, display: Display) -> Sequence[bytes]:
        """What an initialized display can do beyond EGL itself."""
        return (self.call.eglQueryString(display.handle, _EXTENSIONS) or b"").split()

    def failed(self, what: str) -> DeviceError:
        """What ``eglGetError`` says of the call that has just failed."""
        code = self.call.eglGetError()
        return DeviceError(f"{what} failed ({_ERRORS.get(code, hex(code))})")

    def _display(self, name: str, platform: int, native: int | None) -> Iterator[Display]:
        get = self._extension(
            "eglGetPlatformDisplayEXT",
            (ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p),
        )
        if get is not None and (handle := get(platform, native, None)):
            yield Display(name, handle)

    def _devices(self) -> list[int]:
        query = self._extension(
            "eglQueryDevicesEXT",
            (ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p),
        )
        found, count = (ctypes.c_void_p * _MOST_DEVICES)(), ctypes.c_int(0)
        if query is None or not query(_MOST_DEVICES, found, ctypes.byref(count)):
            return []
        return [device for device in found[: count.value] if device]

    def _extension(self, name: str, signature: tuple[Any, ...]) -> Callable[..., Any] | None:
        address = self.loader(name)
        return ctypes.CFUNCTYPE(*signature)(address) if address else None


class EglContext:
    """A context of one version on one display, current when made: of ``high`` priority, where the
    driver gives that. Raises DeviceError."""

    def __init__(self, egl: Egl, display: Display, version: Version, *, high: bool = True) -> None:
        self._egl, self._display = egl, display.handle
        self._surface: int | None = None
        call = egl.call
        if not call.eglInitialize(self._display, None, None):
            raise egl.failed("eglInitialize")
        self._api = _OPENGL_ES_API if version.es else _OPENGL_API
        if not call.eglBindAPI(self._api):
            raise egl.failed("eglBindAPI")
        config = self._config(version)
        profile = () if version.es else (_PROFILE_MASK, _CORE_PROFILE)
        wanted = (_MAJOR, version.major, _MINOR, version.minor, *profile)
        prioritizes = _PRIORITY.encode() in egl.extensions(display)
        self._context = None
        if high and prioritizes:
            self._context = self._create(config, *wanted, _PRIORITY_LEVEL, _HIGH)
        # Mesa 23.1 fails above, instead of giving less, for users who may not have it.
        self._context = self._context or self._create(config, *wanted)
        if not self._context:
            raise egl.failed("eglCreateContext")
        self.driver_priority = DriverPriority(why=f"EGL has no {_PRIORITY}")
        if prioritizes:
            self.driver_priority = self._given(asked=high)
        try:
            self._attach(config)
        except DeviceError:
            self.release()
            raise

    def make_current(self) -> None:
        """Draw with this context on this thread from now on. Raises DeviceError."""
        self._egl.call.eglBindAPI(self._api)
        surface = self._surface
        if not self._egl.call.eglMakeCurrent(self._display, surface, surface, self._context):
            raise self._egl.failed("eglMakeCurrent")

    def release(self) -> None:
        """Destroy the context, and leave none current. The display stays: others may use it."""
        call = self._egl.call
        release_egl_thread()
        call.eglDestroyContext(self._display, self._context)
        if self._surface is not None:
            call.eglDestroySurface(self._display, self._surface)

    def _create(self, config: int | None, *attributes: int) -> int | None:
        made: int | None = self._egl.call.eglCreateContext(
            self._display, config, None, _list(*attributes)
        )
        return made

    def _given(self, asked: bool) -> DriverPriority:
        """What the driver says that the context is: it may be less than was asked for."""
        found = ctypes.c_int(0)
        query = self._egl.call.eglQueryContext
        if not query(self._display, self._context, _PRIORITY_LEVEL, ctypes.byref(found)):
            return DriverPriority(why="EGL does not say what it is")
        level = _LEVELS.get(found.value)
        if level in (Level.HIGH, Level.REALTIME):
            return DriverPriority(level)
        less = f"the driver gives this user {level or hex(found.value)}"
        return DriverPriority(level, less if asked else NOT_ASKED.why)

    def _attach(self, config: int | None) -> None:
        """Make it current without a surface; where that cannot be, with a tiny one."""
        try:
            self.make_current()
        except DeviceError:
            size = _list(_WIDTH, 1, _HEIGHT, 1)
            self._surface = self._egl.call.eglCreatePbufferSurface(self._display, config, size)
            if not self._surface:
                raise
            self.make_current()

    def _config(self, version: Version) -> int | None:
        wanted = _list(
            *(_SURFACE_TYPE, _PBUFFER_BIT),
            *(_RENDERABLE_TYPE, _OPENGL_ES3_BIT if version.es else _OPENGL_BIT),
        )
        config, count = ctypes.c_void_p(), ctypes.c_int(0)
        chosen = self._egl.call.eglChooseConfig(
            self._display, wanted, ctypes.byref(config), 1, ctypes.byref(count)
        )
        if not chosen or not count.value:
            raise DeviceError("EGL has no configuration for it")
        return config.value


def release_egl_thread() -> None:
    """Leave no EGL context current: a window that opens later could not make its own current
    (GLX answers BadAccess, and Xlib ends the process)."""
    library = _library()
    if library is not None:
        library.eglReleaseThread()


def egl_loader() -> Loader | None:
    """GL function addresses through EGL, or None where there is no EGL library."""
    library = _library()
    return None if library is None else loader_of(library)


def gl_functions(loader: Loader, signatures: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
    """Functions of GL by name; a signature is what it returns, then what it takes. Raises
    AttributeError where one is missing."""
    found = {}
    for name, signature in signatures.items():
        if not (address := loader(name)):
            raise AttributeError(name)
        found[name] = KIND(*signature)(address)
    return found


def loader_of(library: Any, name: str = "eglGetProcAddress") -> Loader:
    """Function addresses by the function of a library that tells them. Raises AttributeError where
    it has none."""
    get = getattr(library, name)
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
    return lambda name: get(name.encode())


def _library() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL("libEGL.so.1")
    except OSError:
        return None


def _list(*attributes: int) -> Any:
    return (ctypes.c_int * (len(attributes) + 1))(*attributes, _NONE)
