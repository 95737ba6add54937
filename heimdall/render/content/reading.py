"""Reads a model. Which kind of file it is in, its content says: .vrm files are .glb files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from heimdall.errors import ModelError
from heimdall.render.content import gltf
from heimdall.render.content.files import naming, read_bytes
from heimdall.render.content.model import Model
from heimdall.system.extras import line

_MOST_OBJ_BYTES = 64 << 20
_GLTF = re.compile(rb"glTF|(\xef\xbb\xbf)?\s*\{")  # a container, or JSON
_OBJ = re.compile(rb"^\s*v\s", re.MULTILINE)
_PLAIN = (170, 170, 170, 255)  # a thing of which the file does not say how it looks


def read(path: Path, largest: int = 1024) -> Model:
    """The model in a .glb, .gltf, .vrm or .obj file; textures at most ``largest`` texels wide.
    Raises ModelError, with the file's name, for what cannot be drawn."""
    with naming(path):
        content = read_bytes(path)
        if _GLTF.match(content):
            return gltf.read(path, content, largest)
        if b"\0" in content or not (_OBJ.search(content) or path.suffix.lower() == ".obj"):
            raise ModelError("neither glTF (.glb, .gltf, .vrm) nor .obj: convert it to .glb")
        return gltf.read(path, _converted(path, content), largest)


def _converted(path: Path, content: bytes) -> bytes:
    """An .obj file, which has this content, as a .glb."""
    try:
        import trimesh
    except ImportError as error:
        raise ModelError(
            f".obj files need trimesh: {line('model3d')}; or convert it to .glb"
        ) from error
    if len(content) > _MOST_OBJ_BYTES:
        raise ModelError(f"more than {_MOST_OBJ_BYTES >> 20} MiB; convert it to .glb")
    known = _names_materials(path, content)
    try:
        scene = trimesh.load_scene(path, file_type="obj", process=False)
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
