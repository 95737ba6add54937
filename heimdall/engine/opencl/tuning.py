"""Which variant of a convolution is fastest on this device: measured once, then looked up.

The tables in ``conv_tiles`` are what every device starts with, so nobody has to wait. Tuning
(``heimdall profile MODEL --tune``) tries a few other tiles for each layer of a network, and
keeps those that win clearly in a file for the device and its driver. Files in profiles/tuning/
are such choices shipped with Heimdall; the user's own go first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from heimdall.engine.opencl.conv import plan_conv
from heimdall.engine.opencl.conv_spec import ConvSpec
from heimdall.engine.opencl.launch import Plan, Traits
from heimdall.engine.opencl.layout import Layout
from heimdall.system import findings, paths

SCHEMA = 1
Tuned = Mapping[str, Any]  # what ``plan_conv`` takes as ``tuned``


@dataclass(frozen=True)
class Layer:
    """One convolution and where its tensors lie: all that its kernels depend on."""

    spec: ConvSpec
    x: Layout
    y: Layout
    weights: np.ndarray
    bias: np.ndarray | None
    residual: Layout | None = None
    clears: bool = False  # the halo of y held something else

    @property
    def signature(self) -> str:
        """Equal for layers that run equally fast: sizes, not weights or places in memory."""
        spec, x, y = self.spec, self.x, self.y
        activation = "slopes" if spec.activation.lanes else spec.activation.macro
        parts = [
            f"{spec.kernel} stride {spec.strides} dilation {spec.dilations} groups {spec.groups}",
            f"{(x.channels, x.height, x.width)}/{x.block} halo {x.halo}",
            f"{(y.channels, y.height, y.width)}/{y.block} halo {y.halo}",
            "transposed" if spec.transposed else "",
            "residual" if self.residual else "",
            hashlib.sha256(activation.encode()).hexdigest()[:8],
        ]
        return ", ".join(part for part in parts if part)

    def plan(self, traits: Traits, tuned: Tuned | None = None) -> Plan:
        """Its launches, with the variant asked for where that fits."""
        return plan_conv(
            self.spec, self.x, self.y, self.weights, self.bias, traits,
            residual=self.residual, tuned=tuned, clears=self.clears,
        )  # fmt: skip


class Tuning:
    """The choices for one device and driver, by the signature of a layer."""

    def __init__(self, device: str, driver: str) -> None:
        digest = hashlib.sha256(f"{device}\0{driver}".encode()).hexdigest()[:12]
        name = f"{paths.slug(device)}-{digest}.json"
        self.path = paths.cache_dir() / "tuning" / name
        self._choices: dict[str, Tuned] = {}
        for path in (paths.PROFILES / "tuning" / name, self.path):
            self._choices |= findings.read(path, _choices, "tune again") or {}

    def lookup(self, layer: Layer) -> Tuned | None:
        """The variant that was fastest, or None where the tables' choice is to be used."""
        return self._choices.get(layer.signature) if self._choices else None

    def set(self, layer: Layer, tuned: Tuned) -> None:
        """Choose a variant; an empty one takes a choice back."""
        self._choices[layer.signature] = dict(tuned)

    def save(self) -> None:
        """Best effort: what cannot be saved is measured again another time."""
        content = {"schema": SCHEMA, "choices": dict(sorted(self._choices.items()))}
        findings.write(self.path, content, "tune again")

    @property
    def version(self) -> str:
        """Changes with every choice, as the speed of networks does; empty without any."""
        if not self._choices:
            return ""
        text = json.dumps(self._choices, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]


def _choices(content: Any) -> dict[str, Tuned]:
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
