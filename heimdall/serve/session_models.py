"""The models of a session, for clients in other processes."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

import numpy as np

from heimdall.graph.graph import Tensor
from heimdall.runtime.session.session import Session
from heimdall.serve.models import Tensors


class SessionModels:
    """Whatever a session has registered when this is made. The session's thread serves."""

    def __init__(self, session: Session) -> None:
        self._models = dict(session.models)

    def names(self) -> Sequence[str]:
        return list(self._models)

    def describe(self, name: str) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        model = self._models[name]
        return model.inputs, model.outputs

    def submit(
        self, name: str, inputs: Tensors, *, slo_ms: float | None, priority: str | None
    ) -> Future[dict[str, np.ndarray]]:
        return self._models[name].submit(inputs, slo_ms, priority=priority)
