"""Puts pictures into an X window through memory shared with its server.

For software GL, whose pictures lie in memory anyway. A blit into the window's buffer, whose
channels have another order and whose rows go the other way, is drawn pixel by pixel: 5.6 ms of the
GPU's core for 720p on an AVX2 machine, 16 on a slower one; reading the picture takes the main
thread 0.7 ms, and the GPU nothing. And Mesa's swap waits until the server has taken the picture,
which one that shares its core with real-time threads does late: here it is only told of it.

By XCB, on a connection of its own: unlike Xlib it reports errors instead of ending the process, and
the events of the window stay GLFW's.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import c_int, c_int16, c_size_t, c_uint, c_uint8, c_uint16, c_uint32, c_void_p
from typing import Any

import numpy as np

_KEPT = 3  # pictures: one shown, one on its way, one being written
_Z_PIXMAP = 2
_PRIVATE, _CREATE, _REMOVE = 0, 0o1600, 0  # of shmget and shmctl; for this user only
_ERROR = 0  # kind of an event
_PLACES = ((12, 16), (2, 4))  # in an event: of a segment's number, and of a request's
_DEPTHS = (24, 32)  # bits a pixel that matter: of 32, blue lowest


class _Cookie(ctypes.Structure):
    """What XCB calls a request by; it is handed about by value."""

    _fields_ = (("sequence", c_uint),)


_PUT = (c_void_p, c_uint32, c_uint32, *[c_uint16] * 6, *[c_int16] * 2, *[c_uint8] * 3)
_XCB: dict[str, tuple[Any, ...]] = {  # what it returns, and takes
    "xcb_connect": (c_void_p, c_void_p, c_void_p),
    "xcb_connection_has_error": (c_int, c_void_p),
    "xcb_disconnect": (None, c_void_p),
    "xcb_flush": (c_int, c_void_p),
    "xcb_generate_id": (c_uint32, c_void_p),
    "xcb_get_extension_data": (c_void_p, c_void_p, c_void_p),
    "xcb_create_gc": (_Cookie, c_void_p, c_uint32, c_uint32, c_uint32, c_void_p),
    "xcb_get_geometry": (_Cookie, c_void_p, c_uint32),
    "xcb_get_geometry_reply": (c_void_p, c_void_p, _Cookie, c_void_p),
    "xcb_request_check": (c_void_p, c_void_p, _Cookie),
    "xcb_poll_for_event": (c_void_p, c_void_p),
}
_SHM: dict[str, tuple[Any, ...]] = {
    "xcb_shm_attach_checked": (_Cookie, c_void_p, c_uint32, c_uint32, c_uint8),
    "xcb_shm_detach": (_Cookie, c_void_p, c_uint32),
    "xcb_shm_put_image": (_Cookie, *_PUT, c_uint32, c_uint32),
}
_LIBC: dict[str, tuple[Any, ...]] = {
    "shmget": (c_int, c_int, c_size_t, c_int),
    "shmat": (c_void_p, c_int, c_void_p, c_int),
    "shmdt": (c_int, c_void_p),
    "shmctl": (c_int, c_int, c_int, c_void_p),
    "free": (None, c_void_p),
}


class _Functions:
    """Those above. Raises OSError or AttributeError where one is missing."""

    def __init__(self) -> None:
        shm = ctypes.CDLL("libxcb-shm.so.0")
        libraries = ((ctypes.CDLL("libxcb.so.1"), _XCB), (shm, _SHM), (ctypes.CDLL(None), _LIBC))
        for library, functions in libraries:
            for name, (result, *arguments) in functions.items():
                function = getattr(library, name)
                function.restype, function.argtypes = result, arguments
                setattr(self, name, function)
        self.shm_extension = ctypes.addressof(ctypes.c_char.in_dll(shm, "xcb_shm_id"))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class _Segment:
    """A picture in shared memory: ``pixels``, BGRA uint8 (h, w, 4). Raises OSError."""

    def __init__(self, x: _Functions, link: int, size: tuple[int, int]) -> None:
        self._x, self._link = x, link
        width, height = size
        number = x.shmget(_PRIVATE, width * height * 4, _CREATE)
        if number < 0:
            raise OSError("no shared memory")
        self._address = x.shmat(number, None, 0)
        if self._address in (None, c_void_p(-1).value):
            x.shmctl(number, _REMOVE, None)
            raise OSError("no shared memory")
        self.id = x.xcb_generate_id(link)
        refused = x.xcb_request_check(link, x.xcb_shm_attach_checked(link, self.id, number, 1))
        x.shmctl(number, _REMOVE, None)  # it lasts until both sides have let go of it
        if refused or x.xcb_connection_has_error(link):
            x.free(refused)
            x.shmdt(self._address)
            raise OSError("the X server cannot share memory with this process")
        memory = (c_uint8 * (width * height * 4)).from_address(self._address)
        self.pixels = np.ctypeslib.as_array(memory).reshape(height, width, 4)
        self.busy = False  # the server may still read it
        self.asked = 0  # the last request that it does, by its number

    def release(self) -> None:
        del self.pixels
        self._x.xcb_shm_detach(self._link, self.id)
        self._x.shmdt(self._address)


class SharedScreen:
    """Shows pictures in the X window with the number ``window``. Main thread only.

    Raises OSError where that cannot be: no XCB, a server on another machine, colours of another
    kind.
    """

    def __init__(self, window: int) -> None:
        if sys.byteorder != "little" or not window:
            raise OSError("no X window of this machine's byte order")
        try:
            self._x = x = _Functions()
        except AttributeError as error:
            raise OSError(str(error)) from error
        self._segments: list[_Segment] = []
        self._written: _Segment | None = None
        self._window, self._link = window, x.xcb_connect(None, None)
        try:
            self._depth = self._depth_of(window)
            extension = x.xcb_get_extension_data(self._link, x.shm_extension)
            if self._depth not in _DEPTHS or not extension or not ctypes.string_at(extension, 9)[8]:
                raise OSError("the X server shares no memory, or has not 24 bits a pixel")
            self._completion = ctypes.string_at(extension, 11)[10]  # its first event
            self._gc = x.xcb_generate_id(self._link)
            x.xcb_create_gc(self._link, self._gc, window, 0, None)
        except OSError:
            self.close()
            raise

    def _depth_of(self, window: int) -> int:
        x = self._x
        reply = x.xcb_get_geometry_reply(self._link, x.xcb_get_geometry(self._link, window), None)
        if not reply:
            raise OSError("the X server does not know the window")
        depth = ctypes.string_at(reply, 2)[1]
        x.free(reply)
        return depth

    def resize(self, size: tuple[int, int]) -> None:
        """Pictures are of this size, (width, height), from now on. Raises OSError."""
        self._release()
        for _ in range(_KEPT):
            self._segments.append(_Segment(self._x, self._link, size))

    def room(self) -> np.ndarray | None:
        """Where to put the next picture: BGRA uint8 (h, w, 4), top row first. None while the
        server is so far behind that it still reads all that it was given. Raises OSError where it
        refuses pictures, or has gone."""
        self._hear()
        if self._x.xcb_connection_has_error(self._link):
            raise OSError("the X server has ended the connection")
        self._written = next((each for each in self._segments if not each.busy), None)
        return None if self._written is None else self._written.pixels

    def show(self) -> None:
        """Have the server show what was put there; it is not waited for."""
        segment, self._written = self._written, None
        if segment is None:
            return
        height, width = segment.pixels.shape[:2]
        size, nowhere, tell = (width, height), (0, 0), 1
        cookie = self._x.xcb_shm_put_image(
            *(self._link, self._window, self._gc, *size, *nowhere, *size, *nowhere),
            *(self._depth, _Z_PIXMAP, tell, segment.id, 0),
        )
        self._x.xcb_flush(self._link)
        segment.busy, segment.asked = True, cookie.sequence & 0xFFFF

    def _hear(self) -> None:
        """Which pictures the server has read. Raises OSError for one that it has refused."""
        while event := self._x.xcb_poll_for_event(self._link):
            kind, content = ctypes.string_at(event, 1)[0] & 0x7F, ctypes.string_at(event, 16)
            self._x.free(event)
            number, answered = (int.from_bytes(content[at:end], "little") for at, end in _PLACES)
            if kind == _ERROR and any(each.asked == answered for each in self._segments):
                raise OSError(f"the X server refuses a picture (error {content[1]})")
            for segment in self._segments:
                if kind == self._completion and segment.id == number:
                    segment.busy = False

    def _release(self) -> None:
        self._written = None
        for segment in self._segments:
            segment.release()
        self._segments = []

    def close(self) -> None:
        """Give everything back; closing twice is allowed."""
        if self._link:
            self._release()
            self._x.xcb_disconnect(self._link)
            self._link = None
