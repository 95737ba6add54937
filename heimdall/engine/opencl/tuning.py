"""Which variant of a convolution is fastest on this device: measured once, then looked up.

The tables in ``conv_tiles`` are what every device starts with, so no user has to wait. Over them go
the choices that were measured on one device of a family and are shipped in profiles/tuning/
(scripts/tune_family.py writes them), and over those this machine's own, in a file for the device
and its driver (``heimdall profile MODEL --tune``, and once in the background after an app).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heimdall.engine.opencl.conv_spec import Layer
from heimdall.engine.opencl.launch import Traits
from heimdall.system import findings, paths

SCHEMA = 2
Tuned = Mapping[str, Any]  # what ``plan_conv`` takes as ``tuned``
Choices = Mapping[str, Tuned]  # by the signature of a layer; empty: what the tables say
_FAMILIES = {(16, 32): "avx512", (8, 16): "avx2", (4, 32): "neon"}  # of CPUs, by block, registers


def family(traits: Traits, *, hardware: bool = False) -> str:
    """The devices that share a table, such as ``avx512-1``: one compute unit or several (``-n``)
    differ in what balances. Empty for those without one, which a GPU is (``hardware``) that
    gets the kernels of a CPU."""
    if traits.kind == "gpu":
        name = "gpu"
    else:
        name = "" if hardware else _FAMILIES.get((traits.block, traits.registers), "")
    return name and f"{name}-{_units(traits)}"


def _units(traits: Traits) -> str:
    return "1" if traits.compute_units == 1 else "n"


class Tuning:
    """The choices for one device and driver, by the signature of a layer; ``family`` names the
    table that goes before them, if there is one. ``own``: this machine's, instead of the file's."""

    def __init__(
        self,
        device: str,
        driver: str,
        traits: Traits,
        family: str = "",
        own: Choices | None = None,
    ) -> None:
        key = device, driver, traits.kind, str(traits.block), _units(traits)
        digest = hashlib.sha256("\0".join(key).encode()).hexdigest()[:12]
        self.path = paths.cache_dir() / "tuning" / f"{paths.slug(device)}-{digest}.json"
        self._own = dict(_read(self.path) if own is None else own)
        self._new: dict[str, Tuned] = {}  # of this process
        self._shipped: Choices = read_family(family) if family else {}

    @property
    def own(self) -> Choices:
        """Those of this machine."""
        return self._own

    def lookup(self, layer: Layer) -> Tuned | None:
        """The variant that was fastest, or None where the tables' choice is to be used."""
        if not self._own and not self._shipped:
            return None
        found = self._own.get(layer.signature)
        return (self._shipped.get(layer.signature) if found is None else found) or None

    def knows(self, layer: Layer) -> bool:
        """Whether the layer was measured on this machine, whatever came of it."""
        return layer.signature in self._own

    def set(self, layer: Layer, tuned: Tuned) -> None:
        """Choose a variant; an empty one takes a choice back."""
        self._own[layer.signature] = self._new[layer.signature] = dict(tuned)

    def save(self) -> None:
        """Best effort: what cannot be saved is measured again another time. What another process
        has saved meanwhile stays."""
        choices = {**_read(self.path), **self._new}
        self._own |= choices
        content = {"schema": SCHEMA, "choices": dict(sorted(choices.items()))}
        findings.write(self.path, content, "tune again")

    def chosen(self, signatures: list[str]) -> Choices:
        """The choices among these layers that differ from what the tables say."""
        return {each: self._own[each] for each in sorted(signatures) if self._own.get(each)}

    @property
    def version(self) -> str:
        """Changes with every choice, as the speed of networks does; empty without any."""
        choices = {
            name: dict(tuned) for name, tuned in {**self._shipped, **self._own}.items() if tuned
        }
        if not choices:
            return ""
        text = json.dumps(choices, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]


def _read(path: Path) -> Choices:
    return findings.read(path, _choices, "tune again") or {}


def read_family(name: str) -> Choices:
    """The choices shipped for a family; none where there is no table, or (a warning says so) it
    is damaged."""

    def parse(content: Any) -> Choices:
        if content["family"] != name:
            raise ValueError(f"it is for {content['family']}")
        return _choices(content)

    path = paths.PROFILES / "tuning" / f"{name}.json"
    return findings.read(path, parse, "kernels are chosen without it") or {}


def write_family(name: str, choices: Choices, origin: Mapping[str, Any]) -> Path:
    """Write a family's table, with where it comes from, and return its path. Raises OSError."""
    content = {"schema": SCHEMA, "family": name, **origin, "choices": dict(sorted(choices.items()))}
    path = paths.PROFILES / "tuning" / f"{name}.json"
    text = re.sub(r"(?<=[\[\d,])\n\s+(?=[\d\]])", "", json.dumps(content, indent=1))  # tiles
    paths.replace_file(path, f"{text}\n".encode())
    return path


def _choices(content: Any) -> Choices:
    if content["schema"] != SCHEMA:
        raise ValueError(f"schema {content['schema']} instead of {SCHEMA}")
    return {str(name): _checked(tuned) for name, tuned in content["choices"].items()}


def _checked(tuned: Any) -> Tuned:
    """A variant as ``plan_conv`` takes it. Raises ValueError for anything else."""
    known = {"tile", "winograd"}
    sides = tuned.get("tile", [1, 1, 1])
    whole = len(sides) == 3 and all(isinstance(side, int) and side > 0 for side in sides)
    if (
        not whole
        or not known.issuperset(tuned)
        or not isinstance(tuned.get("winograd", True), bool)
    ):
        raise ValueError(f"{tuned} is no variant")
    return dict(tuned)
