"""Reads a model, whatever kind of file it is in."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from heimdall.errors import ModelError
from heimdall.render.content import gltf
from heimdall.render.content.files import naming, read_bytes
from heimdall.render.content.model import Model
from heimdall.system.extras import line

_MOST_OBJ_BYTES = 64 << 20
_PLAIN = (170, 170, 170, 255)  # a thing of which the file does not say how it looks


def read(path: Path, largest: int = 1024) -> Model:
    """The model in a .glb, .gltf or .obj file; textures at most ``largest`` texels wide. Raises
    ModelError, with the file's name, for whatever cannot be drawn."""
    with naming(path):
        if path.suffix.lower() != ".obj":
            return gltf.read(path, largest)
        return _read_obj(path, largest)


def _read_obj(path: Path, largest: int) -> Model:
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
            f".obj files need trimesh: {line('model3d')}; or convert it to .glb"
        ) from error
    content = read_bytes(path)
    if len(content) > _MOST_OBJ_BYTES:
        raise ModelError(f"more than {_MOST_OBJ_BYTES >> 20} MiB; convert it to .glb")
    known = _names_materials(path, content)
    try:
        scene = trimesh.load_scene(path, process=False)
        if not scene.geometry:
            raise ModelError("it holds nothing to draw")
        for geometry in scene.geometry.values():
            geometry.visual = _painted(geometry.visual, known=known)
        return bytes(scene.export(file_type="glb"))
    except ModelError:
        raise
    except Exception as error:  # trimesh raises whatever its parts raise
        raise ModelError(f"not an .obj that can be read ({error})") from error


def _painted(visual: Any, *, known: bool) -> Any:
    """With a material that is no metal, as glTF's are unless they say so: an .obj knows none.
    Where it does not say at all how it looks, trimesh would have it nearly black."""
    from trimesh.visual import TextureVisuals
    from trimesh.visual.material import PBRMaterial

    own = getattr(visual, "material", None)
    if own is None and visual.defined:  # colours of its vertices
        return visual
    if own is None or not known:
        plain = PBRMaterial(baseColorFactor=_PLAIN, metallicFactor=0.0)
        return TextureVisuals(uv=getattr(visual, "uv", None), material=plain)
    visual.material = own.to_pbr() if hasattr(own, "to_pbr") else own
    visual.material.metallicFactor = 0.0
    return visual


def _names_materials(path: Path, content: bytes) -> bool:
    """Whether an .obj has a material library that is there, in its folder."""
    folder = path.parent.resolve()
    lines = (line.split(maxsplit=1) for line in content.splitlines() if line[:6] == b"mtllib")
    names = (line[1].decode("utf-8", "replace").strip() for line in lines if len(line) > 1)
    places = ((folder / name).resolve() for name in names)
    return any(place.is_relative_to(folder) and place.is_file() for place in places)
