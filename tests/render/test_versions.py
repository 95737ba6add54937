"""Which GL is asked for; and boards' GL, which Mesa plays where it is the driver."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from heimdall.errors import ConfigError, DeviceError
from heimdall.models.results import Detection, Mask
from heimdall.render import Scene, open_surface
from heimdall.render.versions import DESKTOP, EMBEDDED, wanted


def test_desktop_gl_is_tried_first_then_es(monkeypatch):
    monkeypatch.delenv("HEIMDALL_GL", raising=False)
    assert wanted() == (DESKTOP, EMBEDDED)


@pytest.mark.parametrize(("word", "version"), [("gl", DESKTOP), ("es", EMBEDDED)])
def test_one_kind_can_be_asked_for(monkeypatch, word, version):
    monkeypatch.setenv("HEIMDALL_GL", word)
    assert wanted() == (version,)


@pytest.mark.parametrize("headless", [True, False])
def test_an_unknown_kind_is_refused_and_the_known_ones_are_named(monkeypatch, headless):
    monkeypatch.setenv("HEIMDALL_GL", "vulkan")
    with pytest.raises(ConfigError, match="HEIMDALL_GL 'vulkan'; choose one of: es, gl"):
        open_surface((16, 16), headless=headless)


OPEN = """
import sys
from heimdall.errors import DeviceError
from heimdall.render import open_surface
try:
    with open_surface((16, 16), headless=sys.argv[1] == "headless") as surface:
        surface.framebuffer.clear(0, 1, 0)
        surface.finish()
        assert (surface.read() == (0, 255, 0)).all()
        print(surface.renderer)
        print(surface.es, *surface.refused, sep="\\n")
except DeviceError as error:
    print("llvmpipe")
    print(error)
"""


@pytest.fixture(params=["headless", "window"])
def on_a_board(request):
    """Opens a surface where Mesa has these versions of GL; returns what it says of it."""
    if request.param == "window":
        request.getfixturevalue("display")

    def opened(**versions):
        names = {"gl": "MESA_GL_VERSION_OVERRIDE", "es": "MESA_GLES_VERSION_OVERRIDE"}
        board = {names[kind]: version for kind, version in versions.items()}
        done = subprocess.run(
            [sys.executable, "-c", OPEN, request.param],
            env={**os.environ, **board},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        renderer, *lines = done.stdout.splitlines()
        if "llvmpipe" not in renderer:
            pytest.skip("Mesa's versions can be overridden only where Mesa draws")
        return lines

    return opened


def test_a_board_whose_desktop_gl_ends_at_3_1_is_drawn_on_with_es(on_a_board):
    es, *refused = on_a_board(gl="3.1", es="3.0")
    assert es == "True"
    assert refused
    assert all(line.startswith("OpenGL 3.3") for line in refused)


def test_where_no_version_will_do_all_are_named_with_reasons(on_a_board):
    first, *lines = on_a_board(gl="3.1", es="2.0")
    assert "libegl1" in first
    for version in (DESKTOP, EMBEDDED):
        reasons = [line for line in lines if line.startswith(f"  - {version.name}")]
        assert reasons
        assert all(": " in line for line in reasons)


def test_both_kinds_draw_the_same_picture(monkeypatch):
    pictures = []
    for version in (DESKTOP, EMBEDDED):
        monkeypatch.setenv("HEIMDALL_GL", version.word)
        try:
            surface = open_surface((320, 180), headless=True)
        except DeviceError as error:
            pytest.skip(str(error))
        with surface:
            scene = Scene(surface)
            scene.begin(np.full((180, 320, 3), 128, np.uint8), 1)
            scene.model("couch.glb", at=(160, 150), width=120)
            scene.settle()
            scene.begin(np.full((180, 320, 3), 128, np.uint8), 1)
            mask = Mask(np.tri(18, 32, dtype=np.float32))
            scene.mask(mask, "#ff0000")
            scene.model("couch.glb", at=(160, 150), width=120, yaw=20)
            scene.occlude(mask)
            scene.boxes([Detection("cup", 0.9, (200, 20, 300, 100))])
            scene.render()
            surface.finish()
            pictures.append(surface.read().astype(int))
    assert np.abs(pictures[0] - pictures[1]).max() <= 2
