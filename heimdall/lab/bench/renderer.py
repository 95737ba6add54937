"""An app that draws and has no network: what requests run beside, where a scenario has no app."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from heimdall.app import App

FILE = str(Path(__file__))


class Renderer(App):
    """What the camera sees, frame by frame."""

    title = "Frames"
    fps: ClassVar[float] = 60.0
