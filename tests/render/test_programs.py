"""Every way in which a model can be drawn compiles, on desktop OpenGL and on OpenGL ES."""

from itertools import combinations

import pytest

from heimdall.errors import DeviceError
from heimdall.render import programs
from heimdall.render.programs import Programs

KINDS = ("", "SOFT", "METAL")
MAPS = ("SURFACE", "BUMPS", "SHADE", "GLOWING")


def names():
    """Of programs, as `heimdall.render.content.shading.variant` gives them."""
    some = [["MAPS", *each] for n in (1, 4) for each in combinations(MAPS, n)]
    for words in [*([kind] if kind else [] for kind in KINDS), *some]:
        for picture in ([], ["PICTURE"]):
            for rest in ([], ["SKIN"], ["MASK"], ["THROUGH"]):
                yield "+".join(["model", *words, *picture, *rest])


def test_all_of_them_compile(headless):
    compiled = Programs(headless.ctx)
    found = list(names())
    assert len(found) > 60
    for name in found:
        assert compiled[name] is compiled[name]
        assert ("u_picture" in compiled[name]) == ("PICTURE" in name)
        assert ("u_bumps" in compiled[name]) == ("BUMPS" in name)
        assert ("u_joints" in compiled[name]) == ("SKIN" in name)


def test_shaders_may_share_a_file(headless, tmp_path, monkeypatch):
    (tmp_path / "same.glsl").write_text("vec4 shared_colour() { return vec4(1.0); }\n")
    (tmp_path / "one.vert").write_text("void main() { gl_Position = vec4(0.0); }\n")
    (tmp_path / "one.frag").write_text(
        '#include "same.glsl"\nout vec4 f_color;\nvoid main() { f_color = shared_colour(); }\n'
    )
    monkeypatch.setattr(programs, "SHADERS", tmp_path)
    assert Programs(headless.ctx)["one"]


def test_a_driver_that_refuses_is_one_clear_error(headless, tmp_path, monkeypatch):
    (tmp_path / "bad.vert").write_text("void main() { no such thing }\n")
    (tmp_path / "bad.frag").write_text("void main() {}\n")
    monkeypatch.setattr(programs, "SHADERS", tmp_path)
    with pytest.raises(DeviceError, match="'bad'"):
        Programs(headless.ctx)["bad"]
