"""One neural network of an app, as a declaration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from heimdall.errors import ConfigError, unknown
from heimdall.vocabulary.enums import Priority

if TYPE_CHECKING:
    from heimdall.models.base import Pipeline
    from heimdall.models.custom import Decode, Preprocess

DEFAULT_RATE_HZ = 1.0


@dataclass(frozen=True)
class DNN:
    """One neural network of an app, or several in stages behind one model name.

    ``model`` is a name of the catalogue (``heimdall models``), an ``.onnx`` file (looked for
    beside the app's file first) with ``preprocess`` and ``decode`` (see ``models.OnnxPipeline``),
    or a Pipeline.
    ``rate_hz`` is the minimum wanted rate: the DNN runs back to back as the GPU allows,
    ``max_rate_hz`` caps it. ``latency_constraint_ms`` defaults to 1000 / rate_hz.
    ``on_event`` DNNs run only when the app calls ``request``. ``beta``, ``gamma``, ``l0`` and
    ``alpha`` override the priority's preset (paper, Eqs. 2-4). ``force_fallback`` names ONNX
    op types or nodes to run on the CPU, as phones' GPU engines must (paper, section 7.2).
    ``options`` go to the model's pipeline (an input size, say).
    """

    name: str
    model: str | Pipeline
    rate_hz: float = DEFAULT_RATE_HZ
    on_event: bool = False
    latency_constraint_ms: float | None = None
    max_rate_hz: float | None = None
    priority: str = Priority.NORMAL
    beta: float | None = None
    gamma: float | None = None
    l0: float | None = None
    alpha: float | None = None
    force_fallback: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    preprocess: Preprocess | None = None
    decode: Decode | None = None

    def __post_init__(self) -> None:
        where = f"DNN {self.name!r}"
        if not self.name or not isinstance(self.name, str):
            raise ConfigError(f"a DNN needs a name, a text, not {self.name!r}")
        for rate in ("rate_hz", "max_rate_hz", "latency_constraint_ms"):
            value = getattr(self, rate)
            if not (is_positive(value) or (value is None and rate != "rate_hz")):
                raise ConfigError(f"{where}: {rate} must be above 0, not {value}")
        if self.max_rate_hz is not None and self.max_rate_hz < self.rate_hz and not self.on_event:
            raise ConfigError(
                f"{where}: max_rate_hz {self.max_rate_hz} is below rate_hz {self.rate_hz}"
            )
        if self.priority not in Priority.values():
            raise ConfigError(f"{where}: {unknown('priority', self.priority, Priority)}")
        if not isinstance(self.model, str) and (self.preprocess or self.decode):
            raise ConfigError(
                f"{where}: preprocess and decode go with the name of a file; "
                f"{type(self.model).__name__} has its own"
            )

    @property
    def pipeline_options(self) -> dict[str, Any]:
        """The arguments of the model's pipeline."""
        own = {"preprocess": self.preprocess, "decode": self.decode}
        return {**self.options, **{name: each for name, each in own.items() if each is not None}}

    @property
    def constraint_ms(self) -> float:
        """The latency constraint t_max in ms."""
        return self.latency_constraint_ms or 1000.0 / self.rate_hz


def is_positive(value: object) -> bool:
    """Whether it is a number above 0."""
    return isinstance(value, int | float) and value > 0
