"""What a glTF file must be, and what is made of it: files are written by the tests."""

import base64
import json
import struct

import numpy as np
import pytest

from heimdall.errors import ModelError
from heimdall.render import Scene
from heimdall.render.content.reading import read

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], "<f4")
INDICES = np.array([0, 1, 2, 2, 1, 3], "<u2")


def document(**changes):
    """A square of two triangles, as JSON."""
    data = CORNERS.tobytes() + INDICES.tobytes()
    uri = "data:application/octet-stream;base64," + base64.b64encode(data).decode()
    return {
        "asset": {"version": "2.0"},
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3"},
            {"bufferView": 1, "componentType": 5123, "count": 6, "type": "SCALAR"},
        ],
        "bufferViews": [
            {"buffer": 0, "byteLength": 48},
            {"buffer": 0, "byteOffset": 48, "byteLength": 12},
        ],
        "buffers": [{"byteLength": 60, "uri": uri}],
        **changes,
    }


@pytest.fixture
def model(tmp_path):
    """Reads a document."""

    def made(**changes):
        path = tmp_path / "a.gltf"
        path.write_text(json.dumps(document(**changes)))
        return read(path)

    return made


def test_a_square_is_two_triangles_of_its_size(model):
    found = model()
    assert found.triangles == 2
    assert found.size.tolist() == [1, 1, 0]
    assert found.notes == ()
    assert np.allclose(found.parts[0].normals, (0, 0, 1))


def test_nodes_move_and_turn_what_hangs_on_them(model):
    half = 0.5**0.5
    found = model(
        nodes=[
            {"translation": [0, 2, 0], "children": [1]},
            {"rotation": [0, 0, half, half], "scale": [3, 1, 1], "mesh": 0},
        ]
    )
    assert np.allclose(found.low, (-1, 2, 0), atol=1e-6)
    assert np.allclose(found.high, (0, 5, 0), atol=1e-6)


def test_an_animation_moves_its_node_and_ends_where_it_says(tmp_path):
    data = np.array([0, 2, 0, 0, 0, 4, 0, 0], "<f4").tobytes()
    made = document()
    made["buffers"].append(
        {"byteLength": 32, "uri": "data:;base64," + base64.b64encode(data).decode()}
    )
    made["bufferViews"] += [
        {"buffer": 1, "byteLength": 8},
        {"buffer": 1, "byteOffset": 8, "byteLength": 24},
    ]
    made["accessors"] += [
        {"bufferView": 2, "componentType": 5126, "count": 2, "type": "SCALAR"},
        {"bufferView": 3, "componentType": 5126, "count": 2, "type": "VEC3"},
    ]
    made["animations"] = [
        {
            "name": "slide",
            "samplers": [{"input": 2, "output": 3}],
            "channels": [{"sampler": 0, "target": {"node": 0, "path": "translation"}}],
        }
    ]
    path = tmp_path / "a.gltf"
    path.write_text(json.dumps(made))
    found = read(path)
    slide = found.animations["slide"]
    assert slide.seconds == 2
    for time_s, x in ((0.0, 0.0), (0.5, 1.0), (2.0, 4.0)):
        assert found.skeleton.stance(slide, time_s).matrices[0, 0, 3] == pytest.approx(x)


def test_an_optional_extension_is_ignored_with_a_note(model):
    assert "EXT_unheard_of" in model(extensionsUsed=["EXT_unheard_of"]).notes[0]


def in_floats(tree):
    """The same JSON, with 1.0 for each 1."""
    if isinstance(tree, dict):
        return {name: in_floats(each) for name, each in tree.items()}
    if isinstance(tree, list):
        return [in_floats(each) for each in tree]
    return float(tree) if type(tree) is int else tree


def test_whole_numbers_may_be_written_as_floats(writer):
    pixels = np.arange(4 * 4 * 3).reshape(4, 4, 3)
    info = {"index": writer.picture(pixels, sampler=0), "texCoord": 0}
    info["extensions"] = {"KHR_texture_transform": {"texCoord": 1, "offset": [1, 0]}}
    writer.document["samplers"] = [{"wrapS": 33071, "wrapT": 33648, "magFilter": 9728}]
    writer.document["textures"][0]["extensions"] = {"EXT_texture_webp": {"source": 0}}
    sets = {f"TEXCOORD_{k}": writer.array(k + CORNERS[:, :2]) for k in range(2)}
    joints = writer.array([[0, 1, 0, 0]] * 4, "u1")
    weights = writer.array([[0.5, 0.5, 0, 0]] * 4)
    look = {"pbrMetallicRoughness": {"baseColorTexture": info, "metallicFactor": 1}}
    writer.mesh(CORNERS, INDICES, look, [CORNERS], JOINTS_0=joints, WEIGHTS_0=weights, **sets)
    writer.document["accessors"][0]["sparse"] = {
        "count": 1,
        "indices": {"bufferView": writer.view(b"\x03\0"), "componentType": 5123},
        "values": {"bufferView": writer.view(np.ones(3, "<f4").tobytes()), "byteOffset": 0},
    }
    writer.bones()
    writer.document |= {"scene": 0, "extensionsUsed": ["KHR_texture_transform"]}
    expected = writer.read()
    text = json.loads((writer.folder / "a.gltf").read_text())
    path = writer.folder / "floats.gltf"
    path.write_text(json.dumps(in_floats(text)).replace("5123.0", "5.123e3").replace("1.0", "1e0"))
    assert '"version": "2.0"' in path.read_text()
    found = read(path)
    for name in ("positions", "uvs", "indices", "joints", "weights"):
        assert np.array_equal(getattr(found.parts[0], name), getattr(expected.parts[0], name))
    assert np.array_equal(found.textures[0].levels[0], expected.textures[0].levels[0])
    assert found.materials == expected.materials
    assert found.animations.keys() == {"bend"}
    assert np.array_equal(found.parts[0].shapes[0].positions, CORNERS[INDICES])


UNUSED = {
    "accessor": {"accessors": [*document()["accessors"], {"componentType": 5130, "count": 1}]},
    "accessor of a new type": {
        "accessors": [*document()["accessors"], {"componentType": 5126, "count": 1, "type": "X"}]
    },
    "view": {"bufferViews": [*document()["bufferViews"], {"byteStride": 1, "target": "x"}]},
    "material": {"materials": [{"alphaMode": "GLOW"}]},
    "picture": {"images": [7], "textures": [{"sampler": -1}], "samplers": [{"wrapS": 1}]},
    "node": {"nodes": [{"mesh": 0}, {"mesh": "a", "rotation": [0]}], "scene": 0},
    "scene": {"scenes": [{"nodes": [0]}, {"nodes": "all"}]},
    "mesh": {"meshes": [*document()["meshes"], {"primitives": []}]},
    "skin": {"skins": [{"joints": []}]},
    "skin of another scene": {"nodes": [{"mesh": 0}, {}], "skins": [{"joints": [1]}]},
    "coordinates": {
        "accessors": [*document()["accessors"], {"componentType": 5126, "count": 4, "type": "X"}],
        "meshes": [
            {"primitives": [{"attributes": {"POSITION": 0, "TEXCOORD_1": 2}, "indices": 1}]}
        ],
    },
}


@pytest.mark.parametrize("changes", UNUSED.values(), ids=UNUSED)
def test_what_nothing_uses_is_not_checked(model, changes):
    assert model(**changes).triangles == 2


def test_where_it_is_used_it_is_named(model):
    accessors = document()["accessors"]
    accessors[1]["type"] = "VEC5"
    with pytest.raises(ModelError, match=r"a\.gltf: not valid glTF 2\.0: accessors\[1\]\.type: "):
        model(accessors=accessors)


def test_a_compressed_mesh_that_is_there_uncompressed_needs_no_package(model):
    primitive = document()["meshes"][0]["primitives"][0]
    packed = {"bufferView": 0, "attributes": {"POSITION": 0}}
    primitive["extensions"] = {"KHR_draco_mesh_compression": packed}
    used = ["KHR_draco_mesh_compression"]
    assert model(meshes=[{"primitives": [primitive]}], extensionsUsed=used).triangles == 2


BROKEN = {
    "required extension": ({"extensionsRequired": ["EXT_unheard_of"]}, "EXT_unheard_of"),
    "circle": ({"nodes": [{"mesh": 0, "children": [0]}]}, "itself"),
    "nothing there": ({"nodes": [{"mesh": 7}]}, r"meshes\[7\]"),
    "wrong type": ({"scene": "hello"}, "scene"),
    "old version": ({"asset": {"version": "1.0"}}, "glTF of version '1.0': only 2.0"),
    "old, by name": ({"asset": {"version": "1.0"}, "scene": "a", "nodes": {"a": {}}}, "'1.0'"),
    "old, a number": ({"asset": {"version": 1.0}, "scene": "a"}, "glTF of version '1.0'"),
    "old, unsaid": ({"asset": {}, "nodes": {"a": {"meshes": ["b"]}}}, "glTF of version '1.0'"),
    "needs newer": ({"asset": {"version": "2.1", "minVersion": "2.1"}}, "glTF of version '2.1'"),
    "no whole number": ({"scene": 0.5}, "scene: Input should be a valid integer"),
    "a true index": ({"nodes": [{"mesh": True}]}, r"nodes\[0\]\.mesh"),
    "NaN": ({"nodes": [{"mesh": 0, "translation": [0, float("nan"), 0]}]}, "translation"),
    "outside": ({"buffers": [{"byteLength": 60, "uri": "../secret.bin"}]}, "outside"),
    "absolute": ({"buffers": [{"byteLength": 60, "uri": "/etc/passwd"}]}, "folder"),
    "network": ({"buffers": [{"byteLength": 60, "uri": "http://a/b.bin"}]}, "folder"),
    "missing": ({"buffers": [{"byteLength": 60, "uri": "b.bin"}]}, "b.bin"),
    "cut off": ({"buffers": [{"byteLength": 60, "uri": "data:;base64,AAAA"}]}, "cut off"),
    "empty": ({"nodes": []}, r"nodes\[0\]"),
}


@pytest.mark.parametrize(("changes", "said"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_one_clear_error(model, changes, said):
    with pytest.raises(ModelError, match=said) as raised:
        model(**changes)
    assert str(raised.value).startswith("a.gltf: ")


@pytest.mark.parametrize("view", [None, 1])
def test_a_thousand_million_triangles_cost_nothing(model, view):
    accessors = document()["accessors"]
    accessors[1]["count"] = 3 * 10**9
    if view is None:
        del accessors[1]["bufferView"]
    with pytest.raises(ModelError, match="1,000,000,000 triangles"):
        model(accessors=accessors)


def test_counts_are_compared_with_the_bytes_that_are_there(model):
    accessors = document()["accessors"]
    accessors[0]["count"] = 1000
    with pytest.raises(ModelError, match="12,000 bytes"):
        model(accessors=accessors)


def test_indices_beyond_the_vertices_are_refused(model):
    accessors = document()["accessors"]
    accessors[0]["count"] = 3
    with pytest.raises(ModelError, match="index 3, and there are 3"):
        model(accessors=accessors)


@pytest.mark.parametrize("left", [0, 10, 40, -4])
def test_a_container_that_is_cut_off_is_refused(tmp_path, left):
    text = json.dumps(document()).encode()
    text += b" " * (-len(text) % 4)
    whole = struct.pack("<4sIIII", b"glTF", 2, 20 + len(text), len(text), 0x4E4F534A) + text
    path = tmp_path / "a.glb"
    path.write_bytes(whole)
    assert read(path).triangles == 2
    path.write_bytes(whole[:left])
    with pytest.raises(ModelError, match=r"a\.glb"):
        read(path)


def test_a_long_chain_of_nodes_is_no_recursion(model):
    nodes = [{"translation": [0, 0.001, 0], "children": [i + 1]} for i in range(5000)]
    found = model(nodes=[*nodes, {"mesh": 0}])
    assert found.low[1] == pytest.approx(5, abs=1e-2)


def test_too_many_nodes_are_refused(model):
    with pytest.raises(ModelError, match="30000 nodes"):
        model(nodes=[{"mesh": 0}] * 30000)


@pytest.mark.parametrize("what", ["matrix", "rotation", "scale"])
def test_transforms_that_are_no_numbers_are_refused(model, what):
    values = [float("nan")] * {"matrix": 16, "rotation": 4, "scale": 3}[what]
    with pytest.raises(ModelError, match=what):
        model(nodes=[{"mesh": 0, what: values}])


def test_a_mark_of_utf_8_is_no_part_of_the_file(tmp_path):
    path = tmp_path / "a.gltf"
    path.write_text(json.dumps(document()), encoding="utf-8-sig")
    assert read(path).triangles == 2


@pytest.mark.parametrize("mode", [0, 1, 4])
@pytest.mark.parametrize("sides", [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
@pytest.mark.filterwarnings("error")
def test_numbers_of_any_extent_bring_no_warning(writer, headless, mode, sides):
    writer.mesh(CORNERS @ np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0]]) * sides, INDICES)
    writer.document["meshes"][0]["primitives"][0]["mode"] = mode
    path, scene = writer.save(), Scene(headless)
    for sequence in range(3):
        scene.begin(np.zeros((32, 32, 3), np.uint8), sequence)
        scene.model(path, at=(16, 16), width=8)
        scene.settle()
        scene.render()
    assert scene.model(path, at=(16, 16), width=8) is not None


@pytest.mark.filterwarnings("error")
def test_a_model_of_a_size_beyond_all_numbers_is_one_clear_error(writer):
    writer.mesh(1e25 * CORNERS, INDICES)
    with pytest.raises(ModelError, match="misplaced"):
        writer.read()
