"""Camera files of other programs, recognised by their content: all become the values of our own.

ROS' camera_calibration and CameraInfo (YAML), OpenCV's FileStorage (YAML, XML, JSON), Kalibr's
camchain and EuRoC's sensor.yaml, COLMAP's cameras.txt, RealSense's intrinsics as JSON.
"""

from __future__ import annotations

import json
import logging
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from heimdall.capture.lens_models import FISHEYE, PLUMB_BOB, RATIONAL, kind_of
from heimdall.errors import ConfigError

log = logging.getLogger(__name__)

Values = dict[str, Any]

_DEPTH, _MOST = 3, 50  # of maps in maps in which a camera is looked for, and of parts of one
_TOML = re.compile(r"""\s*([\w."' -]+=|\[+[\w."' -]+\]+\s*$)""")
_COLMAP_LINE = re.compile(r"\s*(\d+)\s+([A-Z_]+)\s+(\d+)\s+(\d+)((?:\s+[-+.\deE]+)+)\s*")
# Of COLMAP's parameters: f fx fy cx cy, then coefficients of `lens_of`'s model
_COLMAP = {
    "SIMPLE_PINHOLE": ("f cx cy", "pinhole"),
    "PINHOLE": ("fx fy cx cy", "pinhole"),
    "SIMPLE_RADIAL": ("f cx cy k1", PLUMB_BOB),
    "RADIAL": ("f cx cy k1 k2", PLUMB_BOB),
    "OPENCV": ("fx fy cx cy k1 k2 p1 p2", PLUMB_BOB),
    "FULL_OPENCV": ("fx fy cx cy k1 k2 p1 p2 k3 k4 k5 k6", RATIONAL),
    "OPENCV_FISHEYE": ("fx fy cx cy k1 k2 k3 k4", FISHEYE),
    "SIMPLE_RADIAL_FISHEYE": ("f cx cy k1", FISHEYE),
    "RADIAL_FISHEYE": ("f cx cy k1 k2", FISHEYE),
}
_ORDER = {FISHEYE: ("k1", "k2", "k3", "k4"), PLUMB_BOB: ("k1", "k2", "p1", "p2", "k3")}
_ORDER[RATIONAL] = (*_ORDER[PLUMB_BOB], "k4", "k5", "k6")
_REALSENSE = ("none", "modified_brown_conrady", "inverse_brown_conrady", "ftheta",
              "brown_conrady", "kannala_brandt4")  # fmt: skip

# What programs call a value, in small letters and with _ alone.
_SIDES = {"width": ("width", "image_width"), "height": ("height", "image_height")}
_SIZES = ("resolution", "image_size", "imagesize", "img_size", "size")
_MATRICES = ("camera_matrix", "cameramatrix", "k", "intrinsic_matrix", "intrinsics", "intrinsic",
             "mtx", "matrix")  # fmt: skip
_CENTRES = {"cx": ("cx", "ppx"), "cy": ("cy", "ppy")}
_COEFFICIENTS = re.compile(r"d|coeff.*|dist|dist_?coef.*|distortion(?!.*model).*")
_MODELS = ("distortion_model", "model", "camera_model")
_AROUND = {*_SIDES["width"], *_SIDES["height"], *_SIZES, "distortion_model"}


def cameras_of(text: str) -> dict[str, Values]:
    """The cameras that a file holds, by the name that each has in it ("" of one alone), as values
    of a TOML file of ours. Raises ValueError for what is no file of a known kind, and ConfigError
    for a camera in it that makes no sense."""
    if lines := _colmap(text):
        return lines
    values = _parsed(text)
    return {name: _values(each) for name, each in _found(values, "", {}, _DEPTH)}


def is_toml(text: str) -> bool:
    """True if a file means to be TOML."""
    lines = (line for line in text.splitlines() if line.strip() and line.lstrip()[0] != "#")
    return _TOML.match(next(lines, "")) is not None


def read_toml(text: str) -> Values:
    """The values of a TOML file. Raises ValueError."""
    values: Values = tomllib.loads(text)
    return values


def _parsed(text: str) -> Any:
    begin = text.lstrip("\ufeff \t\r\n")
    try:
        if begin.startswith("<"):
            return _of_xml(ElementTree.fromstring(begin))
        if begin.startswith(("{", "[")):
            # OpenCV 4 writes 0. for 0.0, which is no JSON
            return json.loads(re.sub(r"(?<=\d)\.(?=[\s,\]}])", ".0", begin))
        import yaml

        # OpenCV's own words for YAML's version and a matrix
        plain = re.sub(r"^%YAML.*$|!!?opencv-\w+", "", begin, flags=re.MULTILINE)
        return next(iter(yaml.safe_load_all(plain)), None)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except (ElementTree.ParseError, ValueError) as error:
        raise ValueError(str(error)) from error
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error


def _of_xml(element: ElementTree.Element) -> Any:
    """Maps by the names of elements, and lists of what is between them."""
    if len(element):
        return {each.tag: _of_xml(each) for each in element}
    words = (element.text or "").split()
    return words[0] if len(words) == 1 else words


def _found(
    values: Any, name: str, around: Values, depth: int
) -> list[tuple[str, Mapping[str, Any]]]:
    """Maps that are a camera, with their names; what stands ``around`` one counts for it, too."""
    if isinstance(values, Mapping):
        known = around | {_plain(key): each for key, each in values.items()}
        if {"fx", "fy"} <= known.keys() or _intrinsics(known):
            return [(name, known)]
        around = {key: each for key, each in known.items() if _around(key)}
        inner = [(f"{name}.{key}" if name else str(key), each) for key, each in values.items()]
    elif isinstance(values, list):
        inner = [(f"{name}.{at}" if name else str(at), each) for at, each in enumerate(values)]
    else:
        inner = []
    if not depth:
        return []
    return [one for key, each in inner[:_MOST] for one in _found(each, key, around, depth - 1)]


def _around(key: str) -> bool:
    return key in _AROUND or _COEFFICIENTS.fullmatch(key) is not None


def _plain(key: object) -> str:
    return re.sub(r"[^a-z0-9]+", "_", str(key).lower()).strip("_")


def _intrinsics(known: Mapping[str, Any]) -> list[Any]:
    """The numbers of a matrix, or of what stands for it; none where there is neither."""
    given = (_flat(known[name]) for name in _MATRICES if name in known)
    return next((each for each in given if len(each) >= 4), [])


def _flat(value: Any, depth: int = 2) -> list[Any]:
    """The numbers of a list, of lists in a list, or of a map with ``data``."""
    if isinstance(value, Mapping) and depth:
        return _flat(value.get("data"), depth - 1)
    if not isinstance(value, list):
        return []
    many = (_flat(one, depth - 1) if isinstance(one, list) else [one] for one in value[:_MOST])
    return [each for one in many for each in one] if depth else []


def _values(known: Mapping[str, Any]) -> Values:
    """A camera's values as a TOML file of ours has them."""
    found: Values = {}
    bent, model = _lens(known)
    size = _first(known, _SIZES)
    sides = size if isinstance(size, Mapping) else dict(zip(_SIDES, _flat(size), strict=False))
    for side, names in _SIDES.items():
        if (value := _first(known, names) or sides.get(side)) is not None:
            found[side] = _number(value)
    if {"fx", "fy"} <= known.keys():
        found |= {name: _number(known[name]) for name in ("fx", "fy")}
        for name, names in _CENTRES.items():
            if (value := _first(known, names)) is not None:
                found[name] = _number(value)
    else:
        found |= _of_matrix([_number(each) for each in _intrinsics(known)], model)
    found["distortion"] = [_number(each) for each in bent]
    found["distortion_model"] = model
    return found


def _first(known: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((known[name] for name in names if name in known), None)


def _of_matrix(matrix: Sequence[Any], model: str) -> Values:
    if len(matrix) not in (4, 9):
        raise ConfigError(
            f"its lens ({model or 'no model is named'}) has {len(matrix)} intrinsics: fx, fy, cx, "
            "cy or a matrix of 3x3 are known"
        )
    if len(matrix) == 4:  # Kalibr, EuRoC
        return dict(zip(("fx", "fy", "cx", "cy"), matrix, strict=True))
    if matrix[6] and not matrix[2]:  # by columns, as Open3D has it
        matrix = [matrix[row + 3 * column] for row in range(3) for column in range(3)]
    fx, skew, cx, _, fy, cy = matrix[:6]
    if isinstance(skew, float) and isinstance(fx, float) and abs(skew) > 1e-3 * abs(fx):
        raise ConfigError(f"its camera matrix has a skew of {skew:g}, which no lens here has")
    return {"fx": fx, "fy": fy, "cx": cx, "cy": cy}


def _lens(known: Mapping[str, Any]) -> tuple[list[Any], str]:
    """Coefficients as `lens_of` takes them, and the name of their model."""
    given = _first(known, [key for key in known if _COEFFICIENTS.fullmatch(key)])
    named = given if isinstance(given, Mapping) and "data" not in given else known
    named = {_plain(key): each for key, each in named.items()}
    bent = _flat(given)
    if not bent and "k1" not in named and given not in (None, [], {}):
        raise ConfigError(f"its distortion is {given!r}: a list of coefficients is known")
    # Kalibr has a model of the camera, too, and both count; alone it may be a device's name
    names = [known[name] for name in _MODELS if known.get(name) and (given or name != "model")]
    names = [_REALSENSE[n] if type(n) is int and 0 <= n < len(_REALSENSE) else n for n in names]
    model = "-".join(str(each) for each in names if _plain(each) != "pinhole")
    if str(known.get("fisheye_model", 0)) == "1":  # OpenCV's sample
        model = FISHEYE
    if not bent and "k1" in named:
        if not model and "k4" in named:
            model = RATIONAL if "p1" in named else FISHEYE
        kind = kind_of(model)
        order = _ORDER[kind]
        return [named.get(name, 0.0) for name in order], model
    if len(bent) == 4 and not names and not model:
        log.warning(
            "a camera file has four coefficients and names no distortion_model: they count as k1, "
            "k2, p1, p2"
        )
    return bent, model


def _number(value: Any) -> Any:
    """A number that is written as a word, as YAML takes 1e-5 and XML takes all."""
    try:
        return float(value) if isinstance(value, str | int) and type(value) is not bool else value
    except ValueError:
        return value


def _colmap(text: str) -> dict[str, Values]:
    """The cameras of a cameras.txt; none if it is another file."""
    found = {}
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _COLMAP_LINE.fullmatch(line)
        if match is None:
            return {}
        number, model, width, height = match.groups()[:4]
        if model not in _COLMAP:
            raise ConfigError(
                f"COLMAP's lens model {model} is not known: known are {', '.join(_COLMAP)}"
            )
        names, kind = _COLMAP[model][0].split(), _COLMAP[model][1]
        given = [float(each) for each in match[5].split()]
        if len(given) != len(names):
            raise ConfigError(f"{model} has {len(names)} parameters ({' '.join(names)})")
        named = dict(zip(names, given, strict=True))
        order = _ORDER.get(kind, ())  # none of a pinhole
        found[number] = {
            "width": float(width),
            "height": float(height),
            "fx": named.get("fx", named.get("f")),
            "fy": named.get("fy", named.get("f")),
            # COLMAP counts from the corner of the first pixel, OpenCV from its middle
            "cx": named["cx"] - 0.5,
            "cy": named["cy"] - 0.5,
            "distortion": [named.get(name, 0.0) for name in order],
            "distortion_model": kind,
        }
    return found
