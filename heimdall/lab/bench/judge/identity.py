"""What a network is called in a device's file: the same DNN of another app finds its times."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from heimdall.app import DNN
from heimdall.vocabulary.enums import Precision


def network_id(dnn: DNN[Any], alone_ms: float | None = None) -> str:
    """The model with everything that changes its times: options, precision, ops on the CPU.
    ``alone_ms``: what a scenario asks for, whatever input size gives that on a machine."""
    parts = [dnn.model if isinstance(dnn.model, str) else type(dnn.model).__name__]
    options = {**dnn.options}
    if alone_ms is not None:
        del options["size"]
        parts.append(f"of {alone_ms:g} ms")
    if options:
        parts.append(json.dumps(options, sort_keys=True, default=str))
    if dnn.precision != Precision.FP32:
        parts.append(dnn.precision)
    if dnn.force_fallback:
        parts.append(f"(on the CPU: {' '.join(sorted(dnn.force_fallback))})")
    return " ".join(parts)


def thinned(values: Iterable[float], most: int = 24) -> list[float]:
    """Some of the values that stand for all: at even places of their order."""
    found = sorted(values)
    if len(found) <= most:
        return found
    return [found[int((index + 0.5) * len(found) / most)] for index in range(most)]


def us(ns: float) -> float:
    """Nanoseconds as microseconds to a tenth, as files hold them."""
    return round(ns / 1e3, 1)
