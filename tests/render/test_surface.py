"""The contract that every surface meets."""

import sys
import threading

import numpy as np
import pytest

from heimdall.errors import ConfigError, DeviceError
from heimdall.render import open_surface
from heimdall.render.headless import HeadlessSurface
from heimdall.render.programs import glsl
from heimdall.render.surface import Surface


def test_has_the_size_it_was_opened_with(surface):
    assert surface.size == (320, 180)
    assert surface.framebuffer.size == (320, 180)
    assert surface.scale >= 1
    assert surface.renderer


def test_is_of_the_kind_of_gl_that_was_asked_for(surface, kind):
    assert surface.es == (kind == "es")
    assert surface.version.startswith("OpenGL ES") == surface.es


def test_reads_rgb_with_the_top_row_first(surface):
    target = surface.framebuffer
    target.clear(0, 0, 1, viewport=(0, 0, 320, 180))
    target.clear(1, 0, 0, viewport=(0, 90, 320, 90))  # GL's upper half
    picture = surface.read()
    assert picture.shape == (180, 320, 3)
    assert picture.dtype == np.uint8
    assert (picture[:90] == (255, 0, 0)).all()
    assert (picture[90:] == (0, 0, 255)).all()


def test_a_picture_can_be_read_after_it_was_presented(surface):
    surface.framebuffer.clear(0, 1, 0)
    surface.finish()
    surface.present()
    assert (surface.read() == (0, 255, 0)).all()


AT_DEPTH = """
    uniform float z; void main() {
    gl_Position = vec4(vec2(gl_VertexID & 1, gl_VertexID >> 1) * 4.0 - 2.0, z, 1.0); }"""
ONE_COLOUR = """
    uniform vec3 rgb; out vec4 c; void main() { c = vec4(rgb, 1.0); }"""


def test_depth_is_tested(surface):
    ctx = surface.ctx
    program = ctx.program(vertex_shader=glsl(ctx, AT_DEPTH), fragment_shader=glsl(ctx, ONE_COLOUR))
    square = ctx.vertex_array(program, [])
    surface.framebuffer.clear()
    ctx.enable_only(ctx.DEPTH_TEST)
    for z, rgb in ((-0.5, (1, 0, 0)), (0.5, (0, 0, 1))):  # near first, then far
        program["z"], program["rgb"] = z, rgb
        square.render(ctx.TRIANGLE_STRIP, vertices=4)
    assert (surface.read() == (255, 0, 0)).all()


def test_nothing_happens_where_there_is_no_window(surface):
    assert surface.poll() == []


def test_closing_twice_is_allowed_and_leaves_others_alone(surface):
    surface.close()
    with open_surface((16, 16), headless=True) as other:
        surface.close()
        other.framebuffer.clear(0, 1, 0)
        assert (other.read() == (0, 255, 0)).all()


EVERYWHERE = """
    void main() {
    gl_Position = vec4(vec2(gl_VertexID & 1, gl_VertexID >> 1) * 4.0 - 2.0, 0.0, 1.0); }"""
# Long for a software GPU, so that another thread has time to take the lock.
LONG = """
    out vec4 c; void main() {
    float x = gl_FragCoord.x; for (int i = 0; i < 100; i++) x = sin(x + gl_FragCoord.y);
    c = vec4(x); }"""


@pytest.fixture
def own_pace():
    """Threads take the interpreter's lock only where another gives it up by itself."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(30)
    yield
    sys.setswitchinterval(before)


def test_other_threads_run_while_finish_waits(surface, own_pace):
    program = surface.ctx.program(
        vertex_shader=glsl(surface.ctx, EVERYWHERE), fragment_shader=glsl(surface.ctx, LONG)
    )
    square = surface.ctx.vertex_array(program, [])

    def other_ran():
        go, ran = threading.Event(), threading.Event()

        def wake():
            go.wait()
            ran.set()

        other = threading.Thread(target=wake)
        other.start()
        square.render(surface.ctx.TRIANGLE_STRIP, vertices=4)
        go.set()
        surface.finish()
        seen = ran.is_set()
        other.join()
        return seen

    assert any(other_ran() for _ in range(5))  # a real GPU is quick: the other may miss a turn


def test_two_surfaces_in_turn():
    for _ in range(2):
        with open_surface((16, 16), headless=True) as opened:
            opened.framebuffer.clear(1, 1, 1)
            assert (opened.read() == 255).all()


@pytest.mark.parametrize("size", [(0, 10), (10, -1), (100000, 10)])
def test_an_impossible_size_is_refused(size):
    with pytest.raises(ConfigError, match="pixels"):
        open_surface(size, headless=True)


def test_without_a_display_the_error_says_headless(monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr("glfw.init", lambda: False)
    with pytest.raises(DeviceError, match="headless"):
        open_surface((16, 16))


def test_without_gl_the_error_names_the_packages(monkeypatch):
    def fail(**_):
        raise Exception("the driver is broken")

    monkeypatch.setattr("moderngl.create_context", fail)
    with pytest.raises(DeviceError, match=r"libegl1(.|\n)*OpenGL ES 3.0.*the driver is broken"):
        HeadlessSurface((16, 16))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="EGL is for Linux")
def test_without_egl_the_error_says_so(monkeypatch):
    def missing(name, *_):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr("ctypes.CDLL", missing)
    with pytest.raises(DeviceError, match=r"libegl1(.|\n)*libEGL.so.1 is not installed"):
        HeadlessSurface((16, 16))


def test_the_contract_is_abstract():
    with pytest.raises(TypeError):
        Surface()  # type: ignore[abstract]
