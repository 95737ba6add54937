"""Draws every frame: surface (where), scene (what), overlay (how it is going), recorder
(videos and pictures of it)."""

from heimdall.render.events import Close, Dropped, InputEvent, Key, Pointer, Resize, Scroll
from heimdall.render.opening import open_surface
from heimdall.render.overlay import Overlay
from heimdall.render.panel import DnnStatus, Status
from heimdall.render.recorder import Recorder, save_picture
from heimdall.render.scene import Scene
from heimdall.render.surface import Surface
from heimdall.render.takes import Takes

__all__ = [
    "Close",
    "DnnStatus",
    "Dropped",
    "InputEvent",
    "Key",
    "Overlay",
    "Pointer",
    "Recorder",
    "Resize",
    "Scene",
    "Scroll",
    "Status",
    "Surface",
    "Takes",
    "open_surface",
    "save_picture",
]
