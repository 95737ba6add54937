"""A glTF file's primitives as arrays of vertices and indices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from heimdall.errors import ModelError
from heimdall.render.content import schema
from heimdall.render.content.accessors import Arrays
from heimdall.render.content.files import Files
from heimdall.render.content.materials import Materials
from heimdall.render.content.model import LINES, POINTS, TRIANGLES, DrawCall, Shape
from heimdall.render.content.schema import DracoPrimitive, Primitive, extension
from heimdall.system.extras import line

MOST_TRIANGLES = 4_000_000  # of a model, all instances of its meshes counted
_MODES = (POINTS, LINES, LINES, LINES, TRIANGLES, TRIANGLES, TRIANGLES)
_LOOP, _LINE_STRIP, _STRIP, _FAN = 2, 3, 5, 6
_MOST_SHAPES = 64


class Geometry:
    """Reads primitives."""

    def __init__(self, files: Files, arrays: Arrays, materials: Materials, notes: list[str]):
        self._files, self._arrays, self._materials = files, arrays, materials
        self._notes = notes

    def claimed(self, primitive: Primitive) -> int:
        """How many triangles a primitive says it has, from its header alone."""
        index = primitive.indices
        if index is None:
            index = primitive.attributes.get("POSITION")
        count = self._arrays.count(index) if index is not None else 0
        return count // 3 if primitive.mode == 4 else count

    def part(self, primitive: Primitive, what: str, *, skinned: bool) -> DrawCall | None:
        """A primitive in its own space; None where there is nothing to draw."""
        if "POSITION" not in primitive.attributes:
            self._notes.append(f"{what} has no positions: not drawn")
            return None
        mode = _MODES[primitive.mode]
        coordinates = self._materials.coordinates(primitive.material)
        wanted = {"POSITION", "COLOR_0", *(f"TEXCOORD_{number}" for number in coordinates.sets)}
        wanted |= {"NORMAL"} if mode == TRIANGLES else set()
        wanted |= {"JOINTS_0", "WEIGHTS_0"} if skinned else set()
        found, indices = self._attributes(primitive, wanted, what)
        positions = found["POSITION"]
        count = len(positions)
        indices = _listed(np.arange(count, dtype=np.uint32) if indices is None else indices,
                          primitive.mode)  # fmt: skip
        if not len(indices):
            return None
        colours = _colours(found.get("COLOR_0"), count)
        faded = bool((colours[:, 3] < 255).any())
        material = self._materials.number(primitive.material, faded=faded)
        sets = {int(name[9:]): each for name, each in found.items() if name.startswith("TEXCOORD_")}
        part = DrawCall(
            mode=mode,
            material=material,
            positions=positions,
            normals=np.zeros((count, 3), np.float32),
            uvs=coordinates.of(sets, count),
            colours=colours,
            indices=indices,
            shapes=self._shapes(primitive, count, what),
        )
        if skinned:
            part = _skinned(part, found, what)
        normals = found.get("NORMAL")
        return part if mode != TRIANGLES else self._with_normals(part, normals, what)

    def _attributes(
        self, primitive: Primitive, wanted: set[str], what: str
    ) -> tuple[dict[str, np.ndarray], np.ndarray | None]:
        """What is known of each vertex, as far as it is wanted, and indices if it has some."""
        packed = extension(primitive, schema.DRACO, DracoPrimitive)
        if schema.DRACO not in self._files.document.extensionsRequired and self._arrays.stored(
            primitive.attributes["POSITION"]
        ):
            packed = None  # the same is there uncompressed
        if packed is not None:
            indices, decoded = _decompressed(bytes(self._files.view(packed.bufferView)), what)
            found = {
                name: self._as_numbers(name, decoded[at], what)
                for name, at in packed.attributes.items()
                if name in wanted and at in decoded
            }
            if "POSITION" not in found:
                raise ModelError(f"{what}: its Draco data has no positions")
            if len(indices) and int(indices.max()) >= len(found["POSITION"]):
                raise ModelError(f"{what}: its Draco data has indices beyond its vertices")
            return found, indices
        found = {}
        for name, index in primitive.attributes.items():
            if name in wanted:
                widths = _WIDTHS.get(name, (2,))
                found[name] = self._arrays.numbers(index, widths, f"{what} {name}")
        count = len(found["POSITION"])
        for name, each in found.items():
            if len(each) != count:
                raise ModelError(f"{what}: {len(each)} of {name}, and {count} positions")
        if primitive.indices is None:
            return found, None
        return found, self._arrays.indices(primitive.indices, count, what)

    def _as_numbers(self, name: str, raw: np.ndarray, what: str) -> np.ndarray:
        """Draco's own attributes: integers stand for shares, but for joints."""
        if raw.dtype.kind in "iu" and name != "JOINTS_0":
            raw = raw / np.iinfo(raw.dtype).max
        found = raw.astype(np.float32)
        if not np.isfinite(found).all():
            raise ModelError(f"{what} {name}: numbers that are not finite")
        return found

    def _shapes(self, primitive: Primitive, count: int, what: str) -> tuple[Shape, ...]:
        if len(primitive.targets) > _MOST_SHAPES:
            raise ModelError(f"{what}: {len(primitive.targets)} morph targets; {_MOST_SHAPES} fit")
        found = []
        for number, target in enumerate(primitive.targets):
            deltas: list[np.ndarray | None] = []
            for name in ("POSITION", "NORMAL"):
                index = target.get(name)
                where = f"{what} target {number}"
                delta = None if index is None else self._arrays.numbers(index, (3,), where)
                if delta is not None and len(delta) != count:
                    raise ModelError(f"{where}: {len(delta)} of {name}, and {count} vertices")
                deltas.append(delta)
            moves = deltas[0] if deltas[0] is not None else np.zeros((count, 3), np.float32)
            found.append(Shape(moves, deltas[1]))
        return tuple(found)

    def _with_normals(self, part: DrawCall, normals: np.ndarray | None, what: str) -> DrawCall:
        """With the file's normals; where it has none, with flat ones, as glTF wants it."""
        if normals is None:
            return _flat(part)
        lengths = np.linalg.norm(normals, axis=1, keepdims=True)
        if (lengths < 1e-6).any():
            self._notes.append(f"{what} has normals of no length: made anew")
            return replace(part, normals=smooth_normals(part.positions, part.indices))
        return replace(part, normals=normals / lengths)


_WIDTHS = {
    "POSITION": (3,),
    "NORMAL": (3,),
    "COLOR_0": (3, 4),
    "JOINTS_0": (4,),
    "WEIGHTS_0": (4,),
}


def _decompressed(content: bytes, what: str) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """A Draco mesh, by DracoPy: indices (m,) uint32, and attributes by Draco's own numbers, (n,
    width). Raises ModelError for what is none, and where DracoPy is not installed."""
    try:
        import DracoPy
    except ImportError as error:
        raise ModelError(
            f"{what} is compressed (KHR_draco_mesh_compression), which needs DracoPy: "
            f"{line('model3d')}"
        ) from error
    try:
        mesh = DracoPy.decode(content)
        faces = np.asarray(mesh.faces, np.uint32).reshape(-1)
        found = {each["unique_id"]: np.asarray(each["data"]) for each in mesh.attributes}
    except Exception as error:  # it raises its own kinds, and bare ones
        raise ModelError(f"{what}: its Draco data cannot be read ({error})") from error
    return faces, {at: each.reshape(len(each), -1) for at, each in found.items()}


def smooth_normals(positions: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """The mean of the faces around each vertex, by area."""
    corners = indices.reshape(-1, 3)
    a, b, c = (positions[corners[:, k]] for k in range(3))
    faces = np.cross(b - a, c - a)
    found = np.zeros_like(positions)
    for k in range(3):
        np.add.at(found, corners[:, k], faces)
    return _unit(found)


def _flat(part: DrawCall) -> DrawCall:
    """Every triangle with corners and a normal of its own."""
    spread = part.indices
    positions = part.positions[spread]
    a, b, c = positions.reshape(-1, 3, 3).transpose(1, 0, 2)
    normals = np.repeat(_unit(np.cross(b - a, c - a)), 3, axis=0)
    return replace(
        part,
        positions=positions,
        normals=normals,
        uvs=part.uvs[spread],
        colours=part.colours[spread],
        joints=None if part.joints is None else part.joints[spread],
        weights=None if part.weights is None else part.weights[spread],
        shapes=tuple(Shape(each.positions[spread], None) for each in part.shapes),
        indices=np.arange(len(spread), dtype=np.uint32),
    )


def _unit(vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    up = np.array([0, 1, 0], np.float32)
    safe = np.where(lengths > 1e-12, lengths, 1)
    return np.where(lengths > 1e-12, vectors / safe, up).astype(np.float32)


def _listed(indices: np.ndarray, mode: int) -> np.ndarray:
    """Strips, loops and fans as lists."""
    if mode == _LOOP and len(indices) > 1:
        return np.stack([indices, np.roll(indices, -1)], axis=1).ravel()
    if mode == _LINE_STRIP:
        return np.stack([indices[:-1], indices[1:]], axis=1).ravel()
    if mode == _STRIP:
        rows = np.stack([indices[:-2], indices[1:-1], indices[2:]], axis=1)
        rows[1::2] = rows[1::2, [1, 0, 2]]
        return rows.ravel()
    if mode == _FAN:
        first = np.broadcast_to(indices[:1], (max(len(indices) - 2, 0),))
        return np.stack([first, indices[1:-1], indices[2:]], axis=1).ravel()
    whole = len(indices) // (1, 2, 0, 0, 3)[mode] * (1, 2, 0, 0, 3)[mode]
    return indices[:whole]


def _colours(values: np.ndarray | None, count: int) -> np.ndarray:
    found = np.full((count, 4), 255, np.uint8)
    if values is not None:
        found[:, : values.shape[1]] = np.rint(np.clip(values, 0, 1) * 255)
    return found


def _skinned(part: DrawCall, found: dict[str, np.ndarray], what: str) -> DrawCall:
    joints, weights = found.get("JOINTS_0"), found.get("WEIGHTS_0")
    if joints is None or weights is None:
        raise ModelError(f"{what} has a skin, but no JOINTS_0 and WEIGHTS_0")
    total = weights.sum(axis=1, keepdims=True)
    shares = np.where(total > 0, weights / np.where(total > 0, total, 1), [1, 0, 0, 0])
    return replace(part, joints=joints.astype(np.uint16), weights=shares.astype(np.float32))
