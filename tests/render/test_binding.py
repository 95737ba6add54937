"""A driver that has what OpenGL ES 3.0 has and nothing more: whole scenes are drawn on it."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from heimdall.errors import DeviceError
from heimdall.models.results import Detection, Mask
from heimdall.render import Overlay, Scene, Status, open_surface
from heimdall.render.binding import KIND
from heimdall.render.egl import loader_of
from heimdall.render.recorder import Copies
from heimdall.vocabulary.enums import OverlayView

STATUS = Status(
    app="shopping",
    fps=29.9,
    fps_target=30,
    frame_ms=[33.3] * 60,
    late_frames=0,
    scheduler="max-total",
    mode="elastic",
    device="a board",
    dnns=(),
    gap_utilization=0.9,
    reason="",
    view=OverlayView.TIMELINE,
)

# Of ES 3.1 and 3.2, as far as moderngl knows them.
LATER = {
    "glColorMaski", "glFramebufferTexture", "glGetTexLevelParameteriv", "glMemoryBarrier",
    "glTexParameterIiv", "glPatchParameteri", "glBindImageTexture", "glDispatchCompute",
    "glFramebufferParameteri", "glGetProgramInterfaceiv", "glObjectLabel", "glPushDebugGroup",
}  # fmt: skip


@pytest.fixture
def called(monkeypatch):
    """Functions that ES 3.0 lacks and that were called nevertheless."""
    try:
        library = ctypes.CDLL("libGLESv2.so.2")  # has the functions of ES, and no others
    except OSError:
        pytest.skip("libGLESv2 is not installed")
    names: list[str] = []
    traps = {}

    def strict(egl):
        known = loader_of(egl)

        def address(name):
            if name.startswith("egl"):
                return known(name)
            if hasattr(library, name) and name not in LATER:
                return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
            if name not in traps:
                traps[name] = KIND(None)(lambda: names.append(name))
            return ctypes.cast(traps[name], ctypes.c_void_p).value

        return address

    monkeypatch.setattr("heimdall.render.egl.loader_of", strict)
    monkeypatch.setenv("HEIMDALL_GL", "es")
    return names


def test_nothing_that_es_lacks_is_called(called):
    try:
        surface = open_surface((320, 180), headless=True)
    except DeviceError as error:
        pytest.skip(str(error))
    with surface:
        scene, overlay = Scene(surface), Overlay(surface)
        mask = Mask(np.eye(18, 32, dtype=np.float32))
        scene.begin(np.full((180, 320, 3), 128, np.uint8), 1)
        scene.background(np.zeros((18, 32, 3), np.uint8), mask)
        scene.boxes([Detection("cup", 0.9, (10, 10, 60, 60))])
        scene.mask(mask, "#ff0000")
        scene.model("couch.glb", at=(160, 150), width=80)
        scene.settle()
        scene.model("couch.glb", at=(160, 150), width=80)
        scene.occlude(mask)
        scene.picture(
            np.full((4, 4, 4), 200, np.uint8), np.array([[9, 9], [30, 9], [30, 30], [9, 30]])
        )
        scene.render()
        overlay.lay_out(STATUS)
        overlay.print()
        overlay.show(STATUS)
        surface.finish()
        copies = Copies()
        copies.ask(surface, 1)
        taken = copies.take()
        assert taken is not None
        pixels, tag = taken
        assert tag == 1
        assert (pixels[::-1, :, :3] == surface.read()).all()
        assert len(np.unique(surface.read().reshape(-1, 3), axis=0)) > 50
        copies.release()
    assert called == []
