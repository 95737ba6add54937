"""What a server serves: networks by name, and what runs them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Protocol

import numpy as np

from heimdall.errors import ConfigError
from heimdall.graph.graph import Tensor

Tensors = Mapping[str, np.ndarray]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Models(Protocol):
    """Networks that whole inferences can be asked of. Its methods are for any thread."""

    def names(self) -> Sequence[str]:
        """All models that are served, from first to last."""

    def describe(self, name: str) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        """A model's inputs and outputs, in the network's own order. -1: a batch of any size, which
        is the same for all that have one."""

    def submit(
        self, name: str, inputs: Tensors, *, slo_ms: float | None, priority: str | None
    ) -> Future[dict[str, np.ndarray]]:
        """Ask for one inference. ``inputs`` fit what ``describe`` says. The future gets the
        outputs, or a HeimdallError; one that is cancelled before it runs need not be run."""


def check_name(name: str) -> str:
    """A name that may stand in an address. Raises ConfigError for any other."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"model {name!r}: a served model's name is of letters, digits, '.', '_' and '-'"
        )
    return name
