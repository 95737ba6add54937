"""Files of other kinds than glTF."""

import pytest

from heimdall.errors import ModelError
from heimdall.render.content.reading import read

TRIANGLE = "v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nvt 1 0\nvt 0 1\n"
LIBRARY = "newmtl red\nKd 0.8 0.1 0.1\nNs 20\n"


@pytest.fixture
def obj(tmp_path):
    pytest.importorskip("trimesh", reason="the extra `content` has it")

    def made(lines):
        path = tmp_path / "a.obj"
        path.write_text(TRIANGLE + lines + "\n")
        return read(path)

    return made


@pytest.mark.parametrize(
    "lines", ["f 1 2 3", "f 1/1 2/2 3/3", "mtllib none.mtl\nusemtl red\nf 1/1 2/2 3/3"]
)
def test_an_obj_that_does_not_say_how_it_looks_is_light_and_no_metal(obj, lines):
    found = obj(lines).materials[0]
    assert found.metallic == 0
    assert found.base_map is None
    assert min(found.base[:3]) > 0.5


def test_an_obj_has_the_colours_of_its_library(obj, tmp_path):
    (tmp_path / "m.mtl").write_text(LIBRARY)
    found = obj("mtllib m.mtl\nusemtl red\nf 1/1 2/2 3/3").materials[0]
    assert found.metallic == 0
    assert found.base[:3] == pytest.approx((0.8, 0.1, 0.1), abs=0.01)


def test_an_obj_without_faces_is_refused(obj):
    with pytest.raises(ModelError, match=r"a\.obj"):
        obj("")
