"""Reads a model, whatever kind of file it is in."""

from __future__ import annotations

import tempfile
from pathlib import Path

from heimdall.errors import ModelError
from heimdall.render.content import gltf
from heimdall.render.content.files import read_bytes
from heimdall.render.content.model import Model

_MOST_OBJ_BYTES = 64 << 20


def read(path: Path, largest: int = 1024) -> Model:
    """The model in a .glb, .gltf or .obj file; textures at most ``largest`` texels wide. Raises
    ModelError, with the file's name, for whatever cannot be drawn."""
    if path.suffix.lower() != ".obj":
        return gltf.read(path, largest)
    with tempfile.TemporaryDirectory() as folder:
        converted = Path(folder) / f"{path.stem}.glb"
        converted.write_bytes(_converted(path))
        return gltf.read(converted, largest)


def _converted(path: Path) -> bytes:
    """An .obj file as a .glb."""
    try:
        import trimesh
    except ImportError as error:
        raise ModelError(
            f"{path.name}: .obj files need trimesh: install it with "
            "`pip install heimdall-ar[content]`, or convert the file to .glb"
        ) from error
    if len(read_bytes(path)) > _MOST_OBJ_BYTES:
        raise ModelError(f"{path.name}: more than {_MOST_OBJ_BYTES >> 20} MiB; convert it to .glb")
    try:
        scene = trimesh.load_scene(path, process=False)
        if not scene.geometry:
            raise ModelError(f"{path.name}: it holds nothing to draw")
        return bytes(scene.export(file_type="glb"))
    except ModelError:
        raise
    except Exception as error:  # trimesh raises whatever its parts raise
        raise ModelError(f"{path.name}: not an .obj that can be read ({error})") from error
