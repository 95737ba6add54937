"""One neural network of an app, as a declaration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar, overload

from heimdall.app.feed import Feed
from heimdall.errors import ConfigError, unknown
from heimdall.vocabulary.enums import Precision, Priority
from heimdall.vocabulary.hearing import Hearing, hearing_of

if TYPE_CHECKING:
    from typing import Self, TypeGuard

    from typing_extensions import Unpack

    from heimdall.models.base import Pipeline
    from heimdall.models.custom import Decode, Preprocess
    from heimdall.models.results import (
        Body,
        Body3D,
        Detection,
        FaceMesh,
        Hand,
        Label,
        Mask,
        Picture,
        Speech,
        TextLine,
        TextRegion,
    )
    from heimdall.vocabulary.enums import PrecisionName, PriorityName

DEFAULT_RATE_HZ = 1.0

T = TypeVar("T")


class Settings(TypedDict, total=False):
    """What a DNN may be given by keyword, whatever its model."""

    rate_hz: float
    on_event: bool
    latency_constraint_ms: float | None
    max_rate_hz: float | None
    priority: PriorityName
    beta: float | None
    gamma: float | None
    l0: float | None
    alpha: float | None
    force_fallback: tuple[str, ...]
    precision: PrecisionName
    options: Mapping[str, Any]
    state: Mapping[str, str]
    hears: Hearing | None


@dataclass(frozen=True)
class DNN(Generic[T]):
    """One neural network of an app, or several in stages behind one model name.

    Listed in ``App.dnns``, or an attribute of the class: ``detect = DNN(model="nanodet")`` is
    named after it, and ``self.detect`` then is its Feed, with results of the right type.

    ``model`` is a name of the catalogue (``heimdall models``), an ``.onnx`` file (looked for
    beside the app's file first) with ``preprocess`` and ``decode``, such as ``ImageInput()`` and
    ``Boxes(...)``, or a Pipeline.
    ``rate_hz`` is the minimum wanted rate: the DNN runs back to back as the GPU allows,
    ``max_rate_hz`` caps it. ``latency_constraint_ms`` defaults to 1000 / rate_hz.
    ``on_event`` DNNs run only when the app asks for it. ``beta``, ``gamma``, ``l0`` and
    ``alpha`` override the priority's preset (paper, Eqs. 2-4). ``force_fallback`` names ONNX
    op types or nodes to run on the CPU, as phones' GPU engines must (paper, section 7.2).
    ``precision`` is how weights and activations lie in the GPU's memory: "fp32", "fp16" (half the
    memory; needs a device with cl_khr_fp16), or "auto": fp16 where that is faster and right.
    ``options`` go to the model's pipeline (an input size, say).
    ``state`` makes a file's network recurrent: outputs that are inputs of the next inference, by
    name, such as ``{"h_out": "h_in"}``. They begin as zeros, stay where the DNN runs, and are
    zeros again after ``reset()``; an inference that is dropped does not change them.
    ``hears`` makes it listen: each window of the run's sound is an inference, in their order, and
    ``preprocess`` is given a Sound instead of a picture. Its rate is that of the windows. Bundled
    models that hear, "speech" and "keywords", say so themselves.
    """

    name: str = None  # type: ignore[assignment]
    model: str | Pipeline[T] = None  # type: ignore[assignment]
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
    precision: str = Precision.FP32
    options: Mapping[str, Any] = field(default_factory=dict)
    state: Mapping[str, str] = field(default_factory=dict)
    hears: Hearing | None = None
    preprocess: Preprocess | None = None
    decode: Decode[T] | None = None

    if TYPE_CHECKING:
        # The bundled models' results; then those of a file, a Pipeline, and of any other name.
        @overload
        def __init__(
            self: DNN[list[Detection]],
            name: str = ...,
            model: Literal["nanodet", "centerface"] = ...,
            **settings: Unpack[Settings],
        ) -> None: ...
        @overload
        def __init__(
            self: DNN[Mask],
            name: str = ...,
            model: Literal["selfie"] = ...,
            **settings: Unpack[Settings],
        ) -> None: ...
        @overload
        def __init__(
            self: DNN[list[Hand]],
            name: str = ...,
            model: Literal["hand"] = ...,
            **settings: Unpack[Settings],
        ) -> None: ...
        @overload
        def __init__(
            self: DNN[Picture],
            name: str = ...,
            model: Literal["multistyle"] = ...,
            **settings: Unpack[Settings],
        ) -> None: ...
        @overload
        def __init__(
            self: DNN[Label],
            name: str = ...,
            model: Literal["fashion"] = ...,
            **settings: Unpack[Settings],
        ) -> None: ...
        @overload
        def __init__(
            self: DNN[Speech],
            name: str = ...,
            model: Literal["speech"] = ...,
            **settings: Unpack[Settings],
        ) -> None: ...
        @overload
        def __init__(
            self: DNN[list[Label]],
            name: str = ...,
            model: Literal["keywords"] = ...,
            **settings: Unpack[Settings],
        ) -> None: ...
        @overload
        def __init__(
            self: DNN[list[Body]],
            name: str = ...,
            model: Literal["movenet"] = ...,
            **settings: Unpack[Settings],
        ) -> None: ...
        @overload
        def __init__(
            self: DNN[list[FaceMesh]],
            name: str = ...,
            model: Literal["face-mesh"] = ...,
            **settings: Unpack[Settings],
        ) -> None: ...
        @overload
        def __init__(
            self: DNN[list[Body3D]],
            name: str = ...,
            model: Literal["body"] = ...,
            **settings: Unpack[Settings],
        ) -> None: ...
        @overload
        def __init__(
            self: DNN[list[TextLine]],
            name: str = ...,
            model: Literal["ocr"] = ...,
            **settings: Unpack[Settings],
        ) -> None: ...
        @overload
        def __init__(
            self: DNN[list[TextRegion]],
            name: str = ...,
            model: Literal["ppocr"] = ...,
            **settings: Unpack[Settings],
        ) -> None: ...
        @overload
        def __init__(
            self,
            name: str = ...,
            model: str = ...,
            *,
            preprocess: Preprocess,
            decode: Decode[T],
            **settings: Unpack[Settings],
        ) -> None: ...
        @overload
        def __init__(
            self, name: str = ..., model: Pipeline[T] = ..., **settings: Unpack[Settings]
        ) -> None: ...
        @overload
        def __init__(
            self: DNN[Any], name: str = ..., model: str = ..., **settings: Unpack[Settings]
        ) -> None: ...
        def __init__(self, *arguments: Any, **settings: Any) -> None: ...

    def __post_init__(self) -> None:
        if self.name is not None and (not isinstance(self.name, str) or not self.name):
            raise ConfigError(f"a DNN needs a name, a text, not {self.name!r}")
        object.__setattr__(self, "name", self.name or "")  # until it is an attribute of a class
        object.__setattr__(self, "options", {} if self.options is None else self.options)
        where = f"DNN {self.name!r}" if self.name else f"DNN(model={self.model!r})"
        if self.hears is None:
            object.__setattr__(self, "hears", hearing_of(self.model))
        if self.hears is not None:
            object.__setattr__(self, "on_event", True)  # of a window
            if self.rate_hz == DEFAULT_RATE_HZ:
                object.__setattr__(self, "rate_hz", self.hears.rate_hz)
        if self.model is None or self.model == "":
            raise ConfigError(f"{where} needs a model: a name, an .onnx file or a Pipeline")
        for rate in ("rate_hz", "max_rate_hz", "latency_constraint_ms"):
            value = getattr(self, rate)
            if not (is_positive(value) or (value is None and rate != "rate_hz")):
                raise ConfigError(f"{where}: {rate} must be {wanted(value)}")
            if rate != "max_rate_hz" and value == inf:
                raise ConfigError(f"{where}: {rate} must be finite")
        if self.max_rate_hz is not None and self.max_rate_hz < self.rate_hz and not self.on_event:
            raise ConfigError(
                f"{where}: max_rate_hz {self.max_rate_hz} is below rate_hz {self.rate_hz}"
            )
        for figure in ("beta", "gamma", "l0", "alpha"):
            value = getattr(self, figure)
            if not (value is None or is_number(value)):
                raise ConfigError(f"{where}: {figure} must be a number, not {shown(value)}")
        if self.priority not in Priority.values():
            raise ConfigError(f"{where}: {unknown('priority', self.priority, Priority)}")
        if self.precision not in Precision.values():
            raise ConfigError(f"{where}: {unknown('precision', self.precision, Precision)}")
        if not isinstance(self.model, str) and (self.preprocess or self.decode or self.state):
            raise ConfigError(
                f"{where}: preprocess, decode and state go with the name of a file; "
                f"{type(self.model).__name__} has its own"
            )

    def __set_name__(self, owner: type, name: str) -> None:
        if not self.name:
            object.__setattr__(self, "name", name)

    @overload
    def __get__(self, app: None, owner: type) -> Self: ...
    @overload
    def __get__(self, app: object, owner: type) -> Feed[T]: ...
    def __get__(self, app: object | None, owner: type) -> Self | Feed[T]:
        return self if app is None else Feed(app, self.name)

    @property
    def pipeline_options(self) -> dict[str, Any]:
        """The arguments of the model's pipeline."""
        own = {"preprocess": self.preprocess, "decode": self.decode, "state": self.state or None}
        return {**self.options, **{name: each for name, each in own.items() if each is not None}}

    @property
    def constraint_ms(self) -> float:
        """The latency constraint t_max in ms."""
        return self.latency_constraint_ms or 1000.0 / self.rate_hz


def is_number(value: object) -> TypeGuard[float]:
    """True if ``value`` is one; True and False are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_positive(value: object) -> bool:
    """True if ``value`` is a number above 0."""
    return is_number(value) and value > 0


def wanted(value: object, limits: str = "above 0") -> str:
    """What a figure should be that is ``value``: "above 0, not -1"."""
    number = "" if is_number(value) else "a number "
    return f"{number}{limits}, not {shown(value)}"


def shown(value: object) -> str:
    """A value that is none of the right kind, in a sentence."""
    return f"the text {value!r}" if isinstance(value, str) else repr(value)
