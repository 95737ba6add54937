"""Meshes that are compressed."""

import sys

import numpy as np
import pytest

from heimdall.errors import ModelError

POINTS = np.array([[0, 0, 0], [2, 0, 0], [2, 1, 0], [0, 1, 0]], np.float32)
FACES = np.array([[0, 1, 2], [0, 2, 3]], np.uint32)
NAME = "KHR_draco_mesh_compression"


def compressed(writer, data):
    writer.mesh(POINTS, FACES.ravel())
    primitive = writer.document["meshes"][0]["primitives"][0]
    packed = {"bufferView": writer.view(data), "attributes": {"POSITION": 0}}
    primitive["extensions"] = {NAME: packed}
    writer.document["extensionsRequired"] = [NAME]
    return writer


def test_a_compressed_mesh_is_the_same_mesh(writer):
    draco = pytest.importorskip("DracoPy", reason="the extra `model3d` has it")
    model = compressed(writer, draco.encode(POINTS, FACES, quantization_bits=14)).read()
    assert model.triangles == 2
    assert np.allclose(model.size, (2, 1, 0), atol=1e-3)


def test_broken_data_is_refused_by_name(writer):
    pytest.importorskip("DracoPy", reason="the extra `model3d` has it")
    with pytest.raises(ModelError, match="Draco data cannot be read"):
        compressed(writer, b"no such thing").read()


def test_without_the_package_it_says_what_to_install(writer, monkeypatch):
    monkeypatch.setitem(sys.modules, "DracoPy", None)
    with pytest.raises(ModelError, match=r"pip install 'heimdall-ar\[model3d\]'"):
        compressed(writer, b"anything").read()
