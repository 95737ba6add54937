"""Small glTF files, written array by array."""

import base64
import io
import json
from typing import Any

import numpy as np
import pytest
from PIL import Image

from heimdall.render.content.reading import read

KINDS = {"f4": 5126, "u1": 5121, "u2": 5123, "u4": 5125}
WIDTHS = {1: "SCALAR", 2: "VEC2", 3: "VEC3", 4: "VEC4", 16: "MAT4"}


class Writer:
    """A document that grows; all of its bytes are in one buffer."""

    def __init__(self, folder):
        self.folder, self.content = folder, b""
        self.document: dict[str, Any] = {
            "asset": {"version": "2.0"},
            "scenes": [{"nodes": [0]}],
            "nodes": [{"mesh": 0}],
            "accessors": [],
            "bufferViews": [],
        }

    def view(self, data):
        views = self.document["bufferViews"]
        views.append({"buffer": 0, "byteOffset": len(self.content), "byteLength": len(data)})
        self.content += data + bytes(-len(data) % 4)
        return len(views) - 1

    def array(self, values, kind="f4", **more):
        values = np.ascontiguousarray(values, "<" + kind)
        rows = values.reshape(len(values), -1)
        entry = {
            "bufferView": self.view(values.tobytes()),
            "componentType": KINDS[kind],
            "count": len(rows),
            "type": WIDTHS[rows.shape[1]],
        }
        self.document["accessors"].append({**entry, **more})
        return len(self.document["accessors"]) - 1

    def picture(self, pixels, **texture):
        """A texture of an RGB(A) picture, by number."""
        file = io.BytesIO()
        Image.fromarray(np.asarray(pixels, np.uint8)).save(file, "PNG")
        image = {"bufferView": self.view(file.getvalue()), "mimeType": "image/png"}
        self.document.setdefault("images", []).append(image)
        textures = self.document.setdefault("textures", [])
        textures.append({"source": len(self.document["images"]) - 1, **texture})
        return len(textures) - 1

    def mesh(self, positions, indices=None, material=None, targets=(), **attributes):
        """A mesh of one primitive, by number; attributes are numbers of accessors."""
        primitive: dict[str, Any] = {
            "attributes": {"POSITION": self.array(positions), **attributes}
        }
        if indices is not None:
            primitive["indices"] = self.array(indices, "u2")
        if material is not None:
            self.document.setdefault("materials", []).append(material)
            primitive["material"] = len(self.document["materials"]) - 1
        if targets:
            primitive["targets"] = [{"POSITION": self.array(each)} for each in targets]
        self.document.setdefault("meshes", []).append({"primitives": [primitive]})
        return len(self.document["meshes"]) - 1

    def bones(self):
        """Mesh 0 hangs on two; the upper one, from y = 1 on, turns by 90 degrees in 1 s."""
        self.document["nodes"] = [
            {"mesh": 0, "skin": 0},
            {"children": [2]},
            {"translation": [0, 1, 0]},
        ]
        self.document["scenes"] = [{"nodes": [0, 1]}]
        binds = np.tile(np.eye(4), (2, 1, 1))
        binds[1, 1, 3] = -1
        matrices = self.array(binds.transpose(0, 2, 1).reshape(2, 16))
        self.document["skins"] = [{"joints": [1, 2], "inverseBindMatrices": matrices}]
        turn = {
            "input": self.array([0.0, 1.0]),
            "output": self.array([[0, 0, 0, 1], [0, 0, 0.5**0.5, 0.5**0.5]]),
        }
        channel = {"sampler": 0, "target": {"node": 2, "path": "rotation"}}
        animation = {"name": "bend", "samplers": [turn], "channels": [channel]}
        self.document["animations"] = [animation]

    def save(self, name="a.gltf"):
        uri = "data:application/octet-stream;base64," + base64.b64encode(self.content).decode()
        buffers = [{"byteLength": len(self.content), "uri": uri}] if self.content else []
        path = self.folder / name
        path.write_text(json.dumps({**self.document, "buffers": buffers}))
        return path

    def read(self):
        return read(self.save())


SQUARE = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], float)
TWO = np.array([0, 1, 2, 0, 2, 3])
COORDINATES = np.array([[0, 1], [1, 1], [1, 0], [0, 0]], float)  # a picture lies upright on it


@pytest.fixture
def writer(tmp_path):
    return Writer(tmp_path)


@pytest.fixture
def square(writer):
    """A writer with a square of 1 m, with a picture and what else a material has."""

    def made(pixels=None, **material):
        if pixels is not None:
            material["pbrMetallicRoughness"] = {
                "baseColorTexture": {"index": writer.picture(pixels)}
            }
        uvs = writer.array(COORDINATES)
        writer.mesh(SQUARE, TWO, material, TEXCOORD_0=uvs)
        return writer

    return made
