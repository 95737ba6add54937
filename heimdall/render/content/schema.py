"""A glTF 2.0 file's JSON, checked: right types, finite numbers, indices at least 0.

Only what is drawn is here; other properties are ignored, as glTF wants it. pydantic checks types
and says where in the file one is wrong; pygltflib (1.16) hands strings on as counts. What is wrong
in an entry of a list is an error where the entry is used (`pick`): files hold what nothing uses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
    WrapValidator,
)
from pydantic_core import from_json

from heimdall.errors import ModelError


def _whole(value: Any) -> Any:
    """JSON has one kind of number: 1.0 and 1e0 are whole."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _checked(value: Any, check: Callable[[Any], Any]) -> Any:
    """An entry, or what is wrong with it."""
    try:
        return check(value)
    except ValidationError as error:
        return error


WHOLE, LATER = BeforeValidator(_whole), WrapValidator(_checked)
Index = Annotated[int, WHOLE, Field(ge=0, lt=2**31)]
Count = Annotated[int, WHOLE, Field(ge=0, lt=2**53)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Vector2 = Annotated[tuple[Number, Number], Strict(False)]  # a list will do: JSON has no tuples
Vector3 = Annotated[tuple[Number, Number, Number], Strict(False)]
Vector4 = Annotated[tuple[Number, Number, Number, Number], Strict(False)]
Colour = Annotated[tuple[Share, Share, Share], Strict(False)]
Opacity = Annotated[tuple[Share, Share, Share, Share], Strict(False)]  # a colour with its alpha
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
    minVersion: str | None = None  # noqa: N815  (glTF's own names, here and below)


class Buffer(Entry):
    uri: str | None = None
    byteLength: Count  # noqa: N815


class BufferView(Entry):
    buffer: Index
    byteOffset: Count = 0  # noqa: N815
    byteLength: Count  # noqa: N815
    byteStride: Annotated[int, WHOLE, Field(ge=4, le=252)] | None = None  # noqa: N815


class SparseIndices(Entry):
    bufferView: Index  # noqa: N815
    byteOffset: Count = 0  # noqa: N815
    componentType: Annotated[Literal[5121, 5123, 5125], WHOLE]  # noqa: N815


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
    componentType: Annotated[Literal[5120, 5121, 5122, 5123, 5125, 5126], WHOLE]  # noqa: N815
    normalized: bool = False
    count: Annotated[int, WHOLE, Field(ge=1, lt=2**53)]
    type: Literal["SCALAR", "VEC2", "VEC3", "VEC4", "MAT2", "MAT3", "MAT4"]
    sparse: Sparse | None = None


class Image(Entry):
    uri: str | None = None
    bufferView: Index | None = None  # noqa: N815


class Sampler(Entry):
    wrapS: Annotated[Literal[33071, 33648, 10497], WHOLE] = 10497  # noqa: N815
    wrapT: Annotated[Literal[33071, 33648, 10497], WHOLE] = 10497  # noqa: N815
    magFilter: Index = 9729  # noqa: N815


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
    baseColorFactor: Opacity = (1, 1, 1, 1)  # noqa: N815
    baseColorTexture: TextureInfo | None = None  # noqa: N815
    metallicFactor: Share = 1.0  # noqa: N815
    roughnessFactor: Share = 1.0  # noqa: N815
    metallicRoughnessTexture: TextureInfo | None = None  # noqa: N815


class SpecularGlossiness(Entry):
    diffuseFactor: Opacity = (1, 1, 1, 1)  # noqa: N815
    diffuseTexture: TextureInfo | None = None  # noqa: N815
    glossinessFactor: Share = 1.0  # noqa: N815


class WebP(Entry):
    source: Index | None = None


class Strength(Entry):
    emissiveStrength: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0  # noqa: N815


class Material(Entry):
    pbrMetallicRoughness: MetallicRoughness = MetallicRoughness()  # noqa: N815
    normalTexture: TextureInfo | None = None  # noqa: N815
    occlusionTexture: TextureInfo | None = None  # noqa: N815
    emissiveTexture: TextureInfo | None = None  # noqa: N815
    emissiveFactor: Colour = (0, 0, 0)  # noqa: N815
    alphaMode: Literal["OPAQUE", "MASK", "BLEND"] = "OPAQUE"  # noqa: N815
    alphaCutoff: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.5  # noqa: N815
    doubleSided: bool = False  # noqa: N815


class Primitive(Entry):
    attributes: dict[str, Index]
    indices: Index | None = None
    material: Index | None = None
    mode: Annotated[Literal[0, 1, 2, 3, 4, 5, 6], WHOLE] = 4
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


Used = TypeVar("Used", bound=Entry)
Entries = list[Annotated[Used, LATER]]  # read them by `pick`


class Document(Entry):
    """The whole file."""

    asset: Asset
    scene: Index | None = None
    scenes: Entries[Scene] = []
    nodes: Entries[Node] = []
    meshes: Entries[Mesh] = []
    accessors: Entries[Accessor] = []
    bufferViews: Entries[BufferView] = []  # noqa: N815
    buffers: Entries[Buffer] = []
    materials: Entries[Material] = []
    textures: Entries[Texture] = []
    images: Entries[Image] = []
    samplers: Entries[Sampler] = []
    skins: Entries[Skin] = []
    animations: Entries[Animation] = []
    extensionsUsed: list[str] = []  # noqa: N815
    extensionsRequired: list[str] = []  # noqa: N815


def parse(text: bytes) -> Document:
    """The file's JSON. Raises ModelError for what glTF 2.0 does not allow, and for extensions that
    are required and unknown here."""
    text = text.removeprefix(b"\xef\xbb\xbf")  # some editors' mark of UTF-8
    try:
        document = Document.model_validate_json(text)
    except ValidationError as error:
        _check_version(_version(text))
        raise ModelError(f"not valid glTF 2.0: {_first(error)}") from error
    _check_version(document.asset.version, document.asset.minVersion)
    unknown = sorted(set(document.extensionsRequired) - KNOWN)
    if unknown:
        raise ModelError(
            f"it requires the glTF extension {', '.join(unknown)}, which is not supported; "
            "export the model without it"
        )
    return document


def _version(text: bytes) -> str:
    """That of a file which is not valid glTF 2.0."""
    try:
        tree = from_json(text)
    except ValueError:  # no JSON at all
        return "2.0"
    if not isinstance(tree, dict):
        return "2.0"
    asset = tree.get("asset")
    # What glTF 2.0 has in lists, 1.0 has by name; and its version may be left out.
    named = any(isinstance(tree.get(each), dict) for each in ("accessors", "meshes", "nodes"))
    said = asset.get("version") if isinstance(asset, dict) else None
    return str(said or ("1.0" if named else "2.0"))


def _check_version(version: str, least: str | None = None) -> None:
    """``least``: that which a reader must know."""
    if version.split(".")[0] != "2" or least not in (None, "2.0"):
        version = (least or version)[:20]
        raise ModelError(f"glTF of version {version!r}: only 2.0 is drawn; convert the file")


def ignored(document: Document) -> list[str]:
    """A note for each extension that is used, not required, and unknown here."""
    unknown = sorted(set(document.extensionsUsed) - KNOWN)
    return [f"extension {name} is ignored: it is optional and not supported" for name in unknown]


def pick(entries: Sequence[Used], index: int, what: str) -> Used:
    """``entries[index]``. Raises ModelError where there is none, or it is not valid."""
    if index >= len(entries):
        raise ModelError(f"it refers to {what}[{index}], and there are {len(entries)} {what}")
    found = entries[index]
    if isinstance(found, ValidationError):
        raise ModelError(f"not valid glTF 2.0: {_first(found, f'{what}[{index}]')}")
    return found


def extension(entry: Entry, name: str, kind: type[Used]) -> Used | None:
    """An entry's extension of that name, checked; None where it has none."""
    if name not in entry.extensions:
        return None
    try:
        return kind.model_validate(entry.extensions[name])
    except ValidationError as error:
        raise ModelError(f"not valid glTF 2.0: {name}: {_first(error)}") from error


def _first(error: ValidationError, where: str = "") -> str:
    """The first thing that is wrong, and where."""
    found = error.errors(include_url=False)[0]
    for part in found["loc"]:
        where += f"[{part}]" if isinstance(part, int) else f".{part}"
    return f"{where.lstrip('.')}: {found['msg']}" if where else str(found["msg"])
