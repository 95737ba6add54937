"""A glTF file's nodes as a skeleton, and its animations as tracks of that."""

from __future__ import annotations

import numpy as np

from heimdall.errors import ModelError
from heimdall.render.content import schema
from heimdall.render.content.accessors import Arrays
from heimdall.render.content.motion import PATHS, Animation, Skeleton, Track, gathered
from heimdall.render.content.schema import Document, pick

_MOST_NODES = 20_000
_WIDTHS = {"translation": 3, "rotation": 4, "scale": 3}


class Tree:
    """The nodes of a file's scene; ``order``: their indices, parents first."""

    def __init__(self, document: Document, arrays: Arrays, notes: list[str]):
        self._document, self._arrays, self._notes = document, arrays, notes
        if len(document.nodes) > _MOST_NODES:
            raise ModelError(f"{len(document.nodes)} nodes; at most {_MOST_NODES} are drawn")
        self.order, parents = self._walked()
        self._numbers = {index: number for number, index in enumerate(self.order)}
        self.skeleton = self._skeleton(parents)
        self.animations = self._animations()
        self.moves = self._moving(parents)

    def number(self, index: int, what: str) -> int:
        """A node's place in ``order``."""
        pick(self._document.nodes, index, "nodes")
        if index not in self._numbers:
            raise ModelError(f"{what} uses nodes[{index}], which is not in the scene")
        return self._numbers[index]

    def _walked(self) -> tuple[list[int], list[int]]:
        """Every node that hangs on a root, and its parent's place. Each hangs on one at most:
        otherwise there is a circle, or a file that grows without end."""
        nodes = self._document.nodes
        order: list[int] = []
        parents: list[int] = []
        waiting = [(root, -1) for root in self._roots()]
        seen: set[int] = set()
        while waiting:
            index, parent = waiting.pop()
            node = pick(nodes, index, "nodes")
            if index in seen:
                raise ModelError(
                    f"nodes[{index}] hangs on more than one node, or on itself: "
                    "glTF nodes are a tree"
                )
            seen.add(index)
            waiting += [(child, len(order)) for child in reversed(node.children)]
            order.append(index)
            parents.append(parent)
        return order, parents

    def _roots(self) -> list[int]:
        document = self._document
        if document.scenes:
            which = document.scene or 0
            return list(pick(document.scenes, which, "scenes").nodes)
        nodes = [node for node in document.nodes if isinstance(node, schema.Node)]
        children = {child for node in nodes for child in node.children}
        roots = [index for index in range(len(document.nodes)) if index not in children]
        if document.nodes and not roots:
            raise ModelError("its nodes hang on one another in a circle: glTF nodes are a tree")
        return roots

    def _skeleton(self, parents: list[int]) -> Skeleton:
        nodes = [pick(self._document.nodes, index, "nodes") for index in self.order]
        fixed, weights = {}, {}
        for number, node in enumerate(nodes):
            if node.matrix is not None:
                fixed[number] = np.array(node.matrix).reshape(4, 4).T
            own = node.weights
            if not own and node.mesh is not None:
                own = pick(self._document.meshes, node.mesh, "meshes").weights
            if own:
                weights[number] = np.array(own)
        turns = np.array([node.rotation for node in nodes], float).reshape(-1, 4)
        lengths = np.linalg.norm(turns, axis=1, keepdims=True)
        if (lengths < 1e-6).any():
            raise ModelError(f"nodes[{self.order[int(lengths.argmin())]}]: a rotation of length 0")
        return Skeleton(
            np.array(parents, np.int64),
            np.array([node.translation for node in nodes], float).reshape(-1, 3),
            turns / lengths,
            np.array([node.scale for node in nodes], float).reshape(-1, 3),
            fixed,
            weights,
        )

    def _animations(self) -> dict[str, Animation]:
        found: dict[str, Animation] = {}
        for index in range(len(self._document.animations)):
            entry = pick(self._document.animations, index, "animations")
            name = entry.name or f"animation {index}"
            name = name if name not in found else f"{name} {index}"
            tracks = [self._track(entry, each, name) for each in entry.channels]
            moving = [track for track in tracks if track is not None]
            end = max((float(track.times[-1]) for track in moving), default=0.0)
            found[name] = Animation(name, gathered(moving), end)
        return found

    def _track(
        self, animation: schema.Animation, channel: schema.Channel, name: str
    ) -> Track | None:
        path, target = channel.target.path, channel.target.node
        what = f"animation {name!r}"
        if target is None or path not in PATHS:
            self._notes.append(f"{what}: what moves {path!r} is ignored")
            return None
        if target not in self._numbers:
            pick(self._document.nodes, target, "nodes")
            return None  # it moves what is not in the scene
        sampler = pick(animation.samplers, channel.sampler, "samplers")
        times = self._arrays.numbers(sampler.input, (1,), what)[:, 0].astype(float)
        if (np.diff(times) < 0).any() or times[0] < 0:
            raise ModelError(f"{what}: its times do not ascend")
        keys = len(times) * (3 if sampler.interpolation == "CUBICSPLINE" else 1)
        values = self._arrays.numbers(sampler.output, (1, 3, 4), what)
        width = _WIDTHS.get(path, values.size // keys)
        if values.size != keys * width or not width:
            raise ModelError(f"{what}: {values.size} numbers for {keys} keys of {path}")
        node = self._numbers[target]
        if path != "weights" and node in self.skeleton.fixed:
            self._notes.append(f"{what}: nodes[{target}] has a matrix and is not moved")
            return None
        shaped = values.reshape(keys, 1, width).astype(float)
        return Track(path, np.array([node]), times, shaped, sampler.interpolation)

    def _moving(self, parents: list[int]) -> list[bool]:
        """For each node, whether an animation moves it or one that it hangs on."""
        moved = {
            int(node)
            for animation in self.animations.values()
            for track in animation.tracks
            if track.path != "weights"
            for node in track.nodes
        }
        found: list[bool] = []
        for number, parent in enumerate(parents):
            found.append(number in moved or (parent >= 0 and found[parent]))
        return found
