"""A glTF 2.0 file's JSON, checked: right types, finite numbers, indices at least 0.

Only what is drawn is here; other properties are ignored, as glTF wants it. pydantic checks types
and says where in the file one is wrong; pygltflib (1.16) hands strings on as counts.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from heimdall.errors import ModelError

Index = Annotated[int, Field(ge=0, lt=2**31)]
Count = Annotated[int, Field(ge=0, lt=2**53)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Vector2 = tuple[Number, Number]
Vector3 = tuple[Number, Number, Number]
Vector4 = tuple[Number, Number, Number, Number]
Extensions = dict[str, Any]

DRACO = "KHR_draco_mesh_compression"
TRANSFORM = "KHR_texture_transform"
UNLIT = "KHR_materials_unlit"
GLOSSINESS = "KHR_materials_pbrSpecularGlossiness"
QUANTIZED = "KHR_mesh_quantization"
STRENGTH = "KHR_materials_emissive_strength"
WEBP = "EXT_texture_webp"
KNOWN = frozenset({DRACO, TRANSFORM, UNLIT, GLOSSINESS, QUANTIZED, STRENGTH, WEBP})


class Entry(BaseModel):
    """Any object of the file."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)
    name: str = ""
    extensions: Extensions = {}


class Asset(Entry):
    version: str


class Buffer(Entry):
    uri: str | None = None
    byteLength: Count  # noqa: N815  (glTF's own names, here and below)


class BufferView(Entry):
    buffer: Index
    byteOffset: Count = 0  # noqa: N815
    byteLength: Count  # noqa: N815
    byteStride: Annotated[int, Field(ge=4, le=252)] | None = None  # noqa: N815


class SparseIndices(Entry):
    bufferView: Index  # noqa: N815
    byteOffset: Count = 0  # noqa: N815
    componentType: Literal[5121, 5123, 5125]  # noqa: N815


class SparseValues(Entry):
    bufferView: Index  # noqa: N815
    byteOffset: Count = 0  # noqa: N815


class Sparse(Entry):
    count: Count
    indices: SparseIndices
    values: SparseValues


class Accessor(Entry):
    bufferView: Index | None = None  # noqa: N815
    byteOffset: Count = 0  # noqa: N815
    componentType: Literal[5120, 5121, 5122, 5123, 5125, 5126]  # noqa: N815
    normalized: bool = False
    count: Annotated[int, Field(ge=1, lt=2**53)]
    type: Literal["SCALAR", "VEC2", "VEC3", "VEC4", "MAT2", "MAT3", "MAT4"]
    sparse: Sparse | None = None


class Image(Entry):
    uri: str | None = None
    bufferView: Index | None = None  # noqa: N815


class Sampler(Entry):
    wrapS: Literal[33071, 33648, 10497] = 10497  # noqa: N815
    wrapT: Literal[33071, 33648, 10497] = 10497  # noqa: N815
    magFilter: int = 9729  # noqa: N815


class Texture(Entry):
    source: Index | None = None
    sampler: Index | None = None


class TextureInfo(Entry):
    index: Index
    texCoord: Index = 0  # noqa: N815
    scale: Number = 1.0  # of a normal texture
    strength: Share = 1.0  # of an occlusion texture


class TextureTransform(Entry):
    offset: Vector2 = (0.0, 0.0)
    rotation: Number = 0.0
    scale: Vector2 = (1.0, 1.0)
    texCoord: Index | None = None  # noqa: N815


class MetallicRoughness(Entry):
    baseColorFactor: tuple[Share, Share, Share, Share] = (1, 1, 1, 1)  # noqa: N815
    baseColorTexture: TextureInfo | None = None  # noqa: N815
    metallicFactor: Share = 1.0  # noqa: N815
    roughnessFactor: Share = 1.0  # noqa: N815
    metallicRoughnessTexture: TextureInfo | None = None  # noqa: N815


class SpecularGlossiness(Entry):
    diffuseFactor: tuple[Share, Share, Share, Share] = (1, 1, 1, 1)  # noqa: N815
    diffuseTexture: TextureInfo | None = None  # noqa: N815
    glossinessFactor: Share = 1.0  # noqa: N815


class Strength(Entry):
    emissiveStrength: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0  # noqa: N815


class Material(Entry):
    pbrMetallicRoughness: MetallicRoughness = MetallicRoughness()  # noqa: N815
    normalTexture: TextureInfo | None = None  # noqa: N815
    occlusionTexture: TextureInfo | None = None  # noqa: N815
    emissiveTexture: TextureInfo | None = None  # noqa: N815
    emissiveFactor: tuple[Share, Share, Share] = (0, 0, 0)  # noqa: N815
    alphaMode: Literal["OPAQUE", "MASK", "BLEND"] = "OPAQUE"  # noqa: N815
    alphaCutoff: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.5  # noqa: N815
    doubleSided: bool = False  # noqa: N815


class Primitive(Entry):
    attributes: dict[str, Index]
    indices: Index | None = None
    material: Index | None = None
    mode: Literal[0, 1, 2, 3, 4, 5, 6] = 4
    targets: list[dict[str, Index]] = []


class DracoPrimitive(Entry):
    bufferView: Index  # noqa: N815
    attributes: dict[str, Index]


class Mesh(Entry):
    primitives: Annotated[list[Primitive], Field(min_length=1)]
    weights: list[Number] = []


class Node(Entry):
    children: list[Index] = []
    matrix: Annotated[list[Number], Field(min_length=16, max_length=16)] | None = None
    translation: Vector3 = (0.0, 0.0, 0.0)
    rotation: Vector4 = (0.0, 0.0, 0.0, 1.0)
    scale: Vector3 = (1.0, 1.0, 1.0)
    mesh: Index | None = None
    skin: Index | None = None
    weights: list[Number] = []


class Skin(Entry):
    joints: Annotated[list[Index], Field(min_length=1)]
    inverseBindMatrices: Index | None = None  # noqa: N815


class ChannelTarget(Entry):
    node: Index | None = None
    path: str


class Channel(Entry):
    sampler: Index
    target: ChannelTarget


class AnimationSampler(Entry):
    input: Index
    output: Index
    interpolation: Literal["LINEAR", "STEP", "CUBICSPLINE"] = "LINEAR"


class Animation(Entry):
    channels: list[Channel]
    samplers: list[AnimationSampler]


class Scene(Entry):
    nodes: list[Index] = []


class Document(Entry):
    """The whole file."""

    asset: Asset
    scene: Index | None = None
    scenes: list[Scene] = []
    nodes: list[Node] = []
    meshes: list[Mesh] = []
    accessors: list[Accessor] = []
    bufferViews: list[BufferView] = []  # noqa: N815
    buffers: list[Buffer] = []
    materials: list[Material] = []
    textures: list[Texture] = []
    images: list[Image] = []
    samplers: list[Sampler] = []
    skins: list[Skin] = []
    animations: list[Animation] = []
    extensionsUsed: list[str] = []  # noqa: N815
    extensionsRequired: list[str] = []  # noqa: N815


def parse(text: bytes) -> Document:
    """The file's JSON. Raises ModelError for what glTF 2.0 does not allow, and for extensions that
    are required and unknown here."""
    try:
        document = Document.model_validate_json(text)
    except ValidationError as error:
        raise ModelError(f"not valid glTF 2.0: {_first(error)}") from error
    if document.asset.version.split(".")[0] != "2":
        version = document.asset.version
        raise ModelError(f"glTF of version {version!r}: only 2.0 is drawn; convert the file")
    unknown = sorted(set(document.extensionsRequired) - KNOWN)
    if unknown:
        raise ModelError(
            f"it requires the glTF extension {', '.join(unknown)}, which is not supported; "
            "export the model without it"
        )
    return document


def ignored(document: Document) -> list[str]:
    """A note for each extension that is used, not required, and unknown here."""
    unknown = sorted(set(document.extensionsUsed) - KNOWN)
    return [f"extension {name} is ignored: it is optional and not supported" for name in unknown]


def extension(entry: Entry, name: str, kind: type[Entry]) -> Any:
    """An entry's extension of that name, checked; None where it has none."""
    if name not in entry.extensions:
        return None
    try:
        return kind.model_validate(entry.extensions[name], strict=False)
    except ValidationError as error:
        raise ModelError(f"not valid glTF 2.0: {name}: {_first(error)}") from error


def _first(error: ValidationError) -> str:
    """The first thing that is wrong, and where."""
    found = error.errors(include_url=False)[0]
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in found["loc"])
    return f"{where.lstrip('.')}: {found['msg']}" if where else str(found["msg"])
