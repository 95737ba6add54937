"""A glTF file's materials, with the textures that they share."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np

from heimdall.errors import ModelError
from heimdall.render.content import images, schema
from heimdall.render.content.files import Files
from heimdall.render.content.images import Texture
from heimdall.render.content.model import Material
from heimdall.render.content.schema import TextureInfo, extension, pick

log = logging.getLogger(__name__)
_NEAREST = 9728
_MOST_TEXTURES = 64

Placing = tuple[int, tuple[float, ...]]  # which of the mesh's coordinates, and a (2, 3) matrix
_PLAIN: Placing = (0, (1.0, 0.0, 0.0, 0.0, 1.0, 0.0))


@dataclass(frozen=True)
class Coordinates:
    """Where a material's textures lie: that of its colour, and its other maps."""

    base: Placing = _PLAIN
    others: Placing = _PLAIN

    @property
    def sets(self) -> set[int]:
        """Which of a mesh's own coordinates are needed."""
        return {self.base[0], self.others[0]}

    def of(self, sets: dict[int, np.ndarray], count: int) -> np.ndarray:
        """Texture coordinates (count, 4) of a mesh's own ones."""
        return np.hstack([_placed(each, sets, count) for each in (self.base, self.others)])


def _placed(placing: Placing, sets: dict[int, np.ndarray], count: int) -> np.ndarray:
    number, matrix = placing
    if number not in sets:
        return np.zeros((count, 2), np.float32)
    a = np.reshape(matrix, (2, 3)).astype(np.float32)
    return np.asarray(sets[number] @ a[:, :2].T + a[:, 2])


class Materials:
    """Reads them when they are asked for: what no mesh uses need not exist."""

    def __init__(self, files: Files, largest: int, notes: list[str]):
        self._files, self._largest, self._notes = files, largest, notes
        self._document = files.document
        self._pictures: dict[int, np.ndarray] = {}
        self._numbers: dict[int, int] = {}
        self._read: dict[int | None, tuple[Material, Coordinates]] = {}
        self._ways: dict[tuple[int | None, str], int] = {}  # numbers, by index and alpha mode
        self.textures: list[Texture] = []
        self.materials: list[Material] = []

    def coordinates(self, index: int | None) -> Coordinates:
        """Where the textures lie of the material with that index in the file; None: glTF's
        default."""
        return self._found(index)[1]

    def number(self, index: int | None, *, faded: bool) -> int:
        """Of that material; ``faded``: for vertices whose colours are not opaque."""
        material = self._found(index)[0]
        if material.alpha == "BLEND" and not faded and self._opaque(material):
            material = replace(material, alpha="OPAQUE")
        key = index, material.alpha
        if key not in self._ways:
            self._ways[key] = len(self.materials)
            self.materials.append(material)
        return self._ways[key]

    def _found(self, index: int | None) -> tuple[Material, Coordinates]:
        if index not in self._read:
            plain = Material(metallic=1.0, roughness=1.0), Coordinates()
            self._read[index] = plain if index is None else self._material(index)
        return self._read[index]

    def _material(self, index: int) -> tuple[Material, Coordinates]:
        entry = pick(self._document.materials, index, "materials")
        pbr = entry.pbrMetallicRoughness
        base, metallic = pbr.baseColorFactor, pbr.metallicFactor
        roughness = pbr.roughnessFactor
        colour, surface = pbr.baseColorTexture, pbr.metallicRoughnessTexture
        older = extension(entry, schema.GLOSSINESS, schema.SpecularGlossiness)
        if older is not None:  # its diffuse part is near enough to a base colour
            base, colour, surface = older.diffuseFactor, older.diffuseTexture, None
            metallic, roughness = 0.0, 1 - older.glossinessFactor
        glow = extension(entry, schema.STRENGTH, schema.Strength)
        strength = glow.emissiveStrength if glow is not None else 1.0
        maps = [surface, entry.normalTexture, entry.occlusionTexture, entry.emissiveTexture]
        used = [each for each in maps if each is not None]
        numbers = [self._texture(each) for each in (colour, *maps)]
        material = Material(
            name=entry.name or f"material {index}",
            base=base,
            metallic=metallic,
            roughness=max(roughness, 0.04),
            emissive=tuple(strength * each for each in entry.emissiveFactor),  # type: ignore[arg-type]
            base_map=numbers[0],
            surface_map=numbers[1],
            normal_map=numbers[2],
            occlusion_map=numbers[3],
            emissive_map=numbers[4],
            bumps=entry.normalTexture.scale if entry.normalTexture else 1.0,
            occlusion=entry.occlusionTexture.strength if entry.occlusionTexture else 1.0,
            alpha=entry.alphaMode,
            cutoff=entry.alphaCutoff,
            double_sided=entry.doubleSided,
            unlit=schema.UNLIT in entry.extensions,
        )
        placings = [self._placing(each) for each in used]
        if len(set(placings)) > 1:
            self._notes.append(f"{material.name}: its maps lie as the first of them does")
        base_place = self._placing(colour) if colour else _PLAIN
        return material, Coordinates(base_place, placings[0] if placings else base_place)

    def _opaque(self, material: Material) -> bool:
        """Exporters call things see-through that are not, and drawn as such they show their far
        sides."""
        picture = material.base_map
        seen = 255 if picture is None else int(self.textures[picture].levels[0][..., 3].min())
        return material.base[3] > 0.995 and seen == 255

    def _texture(self, info: TextureInfo | None) -> int | None:
        """The number of a texture; read at the first use."""
        if info is None:
            return None
        if info.index not in self._numbers:
            if len(self.textures) >= _MOST_TEXTURES:
                raise ModelError(f"more than {_MOST_TEXTURES} textures")
            self._numbers[info.index] = len(self.textures)
            self.textures.append(self._loaded(info.index))
        return self._numbers[info.index]

    def _loaded(self, index: int) -> Texture:
        texture = pick(self._document.textures, index, "textures")
        sampler = schema.Sampler()
        if texture.sampler is not None:
            sampler = pick(self._document.samplers, texture.sampler, "samplers")
        webp = extension(texture, schema.WEBP, schema.WebP)
        source = texture.source if webp is None or webp.source is None else webp.source
        if source is None:
            raise ModelError(f"textures[{index}] has no picture that can be read")
        smooth = sampler.magFilter != _NEAREST
        wrap = (sampler.wrapS, sampler.wrapT)
        return images.textured(self._picture(source), wrap, smooth=smooth)

    def _picture(self, index: int) -> np.ndarray:
        if index not in self._pictures:
            image = pick(self._document.images, index, "images")
            what = f"images[{index}]"
            if image.uri is not None:
                content: bytes = self._files.beside(image.uri, what)
            elif image.bufferView is not None:
                content = bytes(self._files.view(image.bufferView))
            else:
                raise ModelError(f"{what} has neither a uri nor a bufferView")
            self._pictures[index] = images.decode(content, what, self._largest)
        return self._pictures[index]

    def _placing(self, info: TextureInfo) -> Placing:
        """KHR_texture_transform, as a matrix; and halved for a texture with its mirror image."""
        moved = extension(info, schema.TRANSFORM, schema.TextureTransform)
        a, number = np.eye(3), info.texCoord
        if moved is not None:
            c, s = np.cos(moved.rotation), np.sin(moved.rotation)
            turn = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
            a = turn @ np.diag([*moved.scale, 1])
            a[:2, 2] = moved.offset
            number = number if moved.texCoord is None else moved.texCoord
        texture = self.textures[self._numbers[info.index]]
        halves = [0.5 if each else 1.0 for each in texture.doubled]
        a = np.diag([*halves, 1]) @ a
        return number, tuple(float(each) for each in a[:2].ravel())
