"""Reads a glTF 2.0 file, .glb or .gltf, into a `Model`.

Everything is checked before it is made: nodes that hang in a circle, references to nothing, more
triangles than can be drawn, numbers that are not finite. Meshes that no animation moves are turned
and moved into the model's space here, and those of one material put together: a frame then makes
few draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from heimdall.errors import ModelError
from heimdall.render.content import detail, ground, schema, shading
from heimdall.render.content.accessors import Arrays
from heimdall.render.content.files import Files
from heimdall.render.content.geometry import MOST_TRIANGLES, Geometry
from heimdall.render.content.materials import Materials
from heimdall.render.content.model import DrawCall, Model, Skin
from heimdall.render.content.posing import placed
from heimdall.render.content.schema import pick
from heimdall.render.content.tree import Tree

_MOST_SIZE = 1e5  # metres: what lies beyond is no thing to stand in a room
_MOST_JOINTS = 1024


def read(path: Path, content: bytes, largest: int) -> Model:
    """The model in a file with this content, textures at most ``largest`` texels wide. Raises
    ModelError for what cannot be drawn."""
    # Numbers may be too large to multiply. What they lead to is looked at in the end.
    with np.errstate(over="ignore", invalid="ignore"):
        return _Reader(path, content, largest).model()


class _Reader:
    def __init__(self, path: Path, content: bytes, largest: int):
        self._path = path
        self._files = Files(path.parent, content)
        self._document = self._files.document
        self._notes = schema.ignored(self._document)
        self._arrays = Arrays(self._files)
        self._materials = Materials(self._files, largest, self._notes)
        self._geometry = Geometry(self._files, self._arrays, self._materials, self._notes)
        self._tree = Tree(self._document, self._arrays, self._notes)
        self._skins: dict[int, Skin] = {}  # by their index in the file

    def model(self) -> Model:
        """All of it."""
        self._count()
        rest = self._tree.skeleton.stance()
        parts = _together(self._parts(rest.matrices))
        if not parts:
            raise ModelError("it holds no triangles, lines or points to draw")
        skins = tuple(self._skins.values())
        points = [placed(part, rest, skins) for part in parts]
        low = np.min([each.min(axis=0) for each in points], axis=0)
        high = np.max([each.max(axis=0) for each in points], axis=0)
        if not (np.isfinite(low).all() and np.abs([low, high]).max() < _MOST_SIZE):
            raise ModelError(f"it reaches from {low} to {high} metres: its nodes are misplaced")
        return Model(
            name=self._path.stem,
            parts=tuple(_ready(part) for part in parts),
            materials=tuple(self._materials.materials),
            textures=tuple(self._materials.textures),
            skeleton=self._tree.skeleton,
            skins=skins,
            animations=self._tree.animations,
            low=low,
            high=high,
            ground=ground.cast(list(zip(points, parts, strict=True)), low, high),
            notes=tuple(dict.fromkeys(self._notes)),
        )

    def _count(self) -> None:
        """Refuse more triangles than can be drawn before any is read."""
        total = 0
        for index in self._tree.order:
            mesh = pick(self._document.nodes, index, "nodes").mesh
            if mesh is not None:
                primitives = pick(self._document.meshes, mesh, "meshes").primitives
                total += sum(self._geometry.claimed(each) for each in primitives)
        if total > MOST_TRIANGLES:
            raise ModelError(f"it has {total:,} triangles; at most {MOST_TRIANGLES:,} are drawn")

    def _skin(self, index: int) -> Skin:
        entry = pick(self._document.skins, index, "skins")
        joints = [self._tree.number(joint, f"skins[{index}]") for joint in entry.joints]
        if len(joints) > _MOST_JOINTS:
            raise ModelError(f"skins[{index}] has {len(joints)} joints; at most {_MOST_JOINTS}")
        binds = np.tile(np.eye(4, dtype=np.float32), (len(joints), 1, 1))
        if entry.inverseBindMatrices is not None:
            what = f"skins[{index}]"
            columns = self._arrays.numbers(entry.inverseBindMatrices, (16,), what)
            if len(columns) < len(joints):
                raise ModelError(f"{what}: {len(columns)} matrices for {len(joints)} joints")
            binds = columns[: len(joints)].reshape(-1, 4, 4).transpose(0, 2, 1)
        return Skin(np.array(joints, np.int64), np.ascontiguousarray(binds))

    def _parts(self, matrices: np.ndarray) -> list[DrawCall]:
        read: dict[tuple[int, int, bool], DrawCall | None] = {}
        parts = []
        for number, index in enumerate(self._tree.order):
            node = pick(self._document.nodes, index, "nodes")
            if node.mesh is None:
                continue
            skin = None
            if node.skin is not None:
                if node.skin not in self._skins:
                    self._skins[node.skin] = self._skin(node.skin)
                skin = list(self._skins).index(node.skin)
            mesh = pick(self._document.meshes, node.mesh, "meshes")
            for which, primitive in enumerate(mesh.primitives):
                key = (node.mesh, which, skin is not None)
                if key not in read:
                    what = f"meshes[{node.mesh}].primitives[{which}]"
                    read[key] = self._geometry.part(primitive, what, skinned=skin is not None)
                part = read[key]
                if part is not None:
                    parts.append(self._standing(part, number, skin, matrices))
        skins = list(self._skins.values())
        for part in parts:
            if part.skin is not None and part.joints is not None:
                joints = len(skins[part.skin].joints)
                if int(part.joints.max()) >= joints:
                    raise ModelError(f"a vertex hangs on joint {part.joints.max()} of {joints}")
        return parts

    def _standing(
        self, part: DrawCall, number: int, skin: int | None, matrices: np.ndarray
    ) -> DrawCall:  # fmt: skip
        """A part where its node has it: moved there for good, unless something moves it later."""
        if part.shapes:
            part = replace(part, shaped_by=number)
        if skin is not None:
            return replace(part, skin=skin)
        if self._tree.moves[number] or part.shapes:
            return replace(part, node=number)
        matrix = matrices[number].astype(np.float32)
        turn = matrix[:3, :3]
        scale = float(np.linalg.det(turn))
        normals = part.normals
        if abs(scale) > 1e-18:
            normals = part.normals @ np.linalg.inv(turn)
            lengths = np.linalg.norm(normals, axis=1, keepdims=True)
            normals = normals / np.where(lengths > 0, lengths, 1)
        indices = part.indices
        if scale < 0 and part.mode == "triangles":  # mirrored: the outside stays outside
            indices = indices.reshape(-1, 3)[:, ::-1].ravel()
        moved = part.positions @ turn.T + matrix[:3, 3]
        return replace(part, positions=moved, normals=normals.astype(np.float32), indices=indices)


def _ready(part: DrawCall) -> DrawCall:
    return replace(
        part,
        coarser=detail.levels(part),
        closed=detail.closed(part),
        turning=shading.turning(part),
    )


def _together(parts: Sequence[DrawCall]) -> list[DrawCall]:
    """Parts of one material that stand in the model's space, as one."""
    groups: dict[object, list[DrawCall]] = {}
    for number, part in enumerate(parts):
        alone = part.node is not None or part.skin is not None
        groups.setdefault(number if alone else (part.material, part.mode), []).append(part)
    return [each[0] if len(each) == 1 else _joined(each) for each in groups.values()]


def _joined(parts: list[DrawCall]) -> DrawCall:
    starts = np.cumsum([0, *(len(part.positions) for part in parts[:-1])])
    indices = [part.indices + start for part, start in zip(parts, starts, strict=True)]
    return replace(
        parts[0],
        positions=np.concatenate([part.positions for part in parts]),
        normals=np.concatenate([part.normals for part in parts]),
        uvs=np.concatenate([part.uvs for part in parts]),
        colours=np.concatenate([part.colours for part in parts]),
        indices=np.concatenate(indices).astype(np.uint32),
    )
