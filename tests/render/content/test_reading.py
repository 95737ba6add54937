"""Files of other kinds than glTF."""

import shutil

import pytest
from PIL import Image

from heimdall.errors import ModelError
from heimdall.render.content.reading import read
from heimdall.render.content.stock import FOLDER

TRIANGLE = "v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nvt 1 0\nvt 0 1\n"
LIBRARY = "newmtl red\nKd 0.8 0.1 0.1\nNs 20\n"


@pytest.fixture
def obj(tmp_path):
    pytest.importorskip("trimesh", reason="the extra `model3d` has it")

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


def test_an_obj_reads_nothing_outside_of_its_folder(tmp_path):
    pytest.importorskip("trimesh", minversion="5", reason="the extra `model3d` has it")
    folder = tmp_path / "inside"
    folder.mkdir()
    Image.new("RGB", (4, 4), (255, 0, 0)).save(tmp_path / "secret.png")
    (tmp_path / "m.mtl").write_text(LIBRARY)
    (folder / "m.mtl").write_text("newmtl red\nKd 0.8 0.8 0.8\nmap_Kd ../secret.png\n")
    path = folder / "a.obj"
    for library, colour in (("m.mtl", 0.8), ("../m.mtl", 2 / 3)):
        path.write_text(f"mtllib {library}\n{TRIANGLE}usemtl red\nf 1/1 2/2 3/3\n")
        found = read(path).materials[0]
        assert found.base_map is None
        assert found.base[:3] == pytest.approx([colour] * 3, abs=0.01)


def test_an_obj_without_faces_is_refused(obj):
    with pytest.raises(ModelError, match=r"a\.obj"):
        obj("")


def test_a_model_is_known_by_its_content(obj, tmp_path):
    (tmp_path / "a.obj").write_text(TRIANGLE + "f 1 2 3\n")
    (tmp_path / "a.obj").rename(tmp_path / "a.glb")
    assert read(tmp_path / "a.glb").triangles == 1


@pytest.mark.parametrize("name", ["a.vrm", "a.obj", "a.bin", "a"])
def test_a_container_may_have_any_name(name, tmp_path):
    shutil.copy(FOLDER / "lamp.glb", tmp_path / name)
    assert read(tmp_path / name).triangles == read(FOLDER / "lamp.glb").triangles


@pytest.mark.parametrize("name", ["a.gltf", "a.fbx", "a.glb", "a.vrm"])
@pytest.mark.parametrize("content", [b"", b"Kaydara FBX Binary  \0", b"<html>none</html>"])
def test_what_is_no_model_is_refused_by_its_content(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelError, match=rf"{name}: neither glTF .* nor \.obj"):
        read(tmp_path / name)
