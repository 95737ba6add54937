"""Tensors of whole numbers held as floats, and what is computed with them.

Floats hold whole numbers one by one up to 2^24. A sum that cannot become larger is exact,
whatever the order in which an engine adds; one that can is left to dequantised numbers, and may
now and then be rounded to the next step.

``Round`` right behind such a sum changes nothing: it says that the sum is whole, and keeps
optimisers from moving the multiplication that follows into the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from heimdall.graph.checks import MisfitError

_EXACT = 1 << 24
_RANGES: dict[int, tuple[int, int]] = {
    TensorProto.UINT8: (0, 255),
    TensorProto.INT8: (-128, 127),
    TensorProto.UINT16: (0, 65535),
    TensorProto.INT16: (-32768, 32767),
}
SUMS = ("Conv", "ConvTranspose", "Gemm", "MatMul")  # of products with weights, their second input


class Scaled(NamedTuple):
    """Floats that are whole numbers ``low`` to ``high`` times a scale, or times one for each place
    along ``axis``. ``exact``: the product is still to be made, so another scale can join it."""

    whole: str
    scales: np.ndarray
    low: float
    high: float
    axis: int = 0
    along: tuple[int, ...] = ()  # the shape of several scales
    exact: bool = False

    @property
    def uniform(self) -> bool:
        return self.scales.size == 1

    @property
    def most(self) -> float:
        return max(abs(self.low), abs(self.high))


class WholeNumbers:
    """The new ``nodes`` of a model, and for each quantised tensor what stands for it; constants are
    added to the model itself. ``node`` is the name of the one being replaced, from which the names
    of new tensors are made.

    ``kinds``: their element types. ``centred``: those held without their zero point, and that.
    ``scaled``: float tensors made of whole numbers.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        self._constants = {item.name: item for item in model.graph.initializer}
        self._names = {name for node in model.graph.node for name in node.output}
        self._names |= set(self._constants) | {value.name for value in model.graph.input}
        # those that are known: of constants, and of what they are made into
        self._shapes = {name: tuple(item.dims) for name, item in self._constants.items()}
        self.nodes: list[onnx.NodeProto] = []
        self.node = ""
        self._floats: dict[str, str] = {}
        self._as_integers: set[str] = set()
        self.kinds: dict[str, int] = {}
        self.centred: dict[str, tuple[str, np.ndarray]] = {}
        self.scaled: dict[str, Scaled] = {}

    # --- nodes and constants ---

    def store(self, name: str, constant: TensorProto) -> None:
        """Enter a constant."""
        self._constants[name] = constant
        self._shapes[name] = tuple(constant.dims)

    def name(self, name: str) -> str:
        """A new name."""
        while name in self._names:
            name += "_"
        self._names.add(name)
        return name

    def emit(self, op: str, *inputs: str, into: str = "", **attributes: Any) -> str:
        """A node of one output, which is returned."""
        output = into or self.name(f"{self.node}/{op}")
        name = self.node if into else output
        self.nodes.append(helper.make_node(op, inputs, [output], name, **attributes))
        return output

    def constant(self, array: Any, name: str = "number") -> str:
        """A float constant."""
        made = self.name(f"{self.node}/{name}")
        stored = numpy_helper.from_array(np.asarray(array, np.float32), made)
        self._model.graph.initializer.append(stored)
        self.store(made, stored)
        return made

    def array(self, name: str) -> np.ndarray | None:
        """A constant's numbers."""
        return numpy_helper.to_array(self._constants[name]) if name in self._constants else None

    def number(self, name: str, default: float | None = None) -> np.float32 | None:
        """A constant of one element; the default where it is left out."""
        array = self.array(name)
        if not name and default is not None:
            return np.float32(default)
        return None if array is None or array.size != 1 else np.float32(array.reshape(()))

    # --- whole numbers ---

    def carry(self, name: str, kind: int) -> str:
        """The float tensor that stands for the integers of ``name``."""
        self.kinds[name] = kind
        self._floats[name] = self.name(f"{name}/float")
        return self._floats[name]

    def integers(self, name: str) -> None:
        """Make the integers themselves, for ops and outputs that need them."""
        if name in self.kinds and name not in self._as_integers:
            self._as_integers.add(name)
            cast = helper.make_node("Cast", [self.floats(name)], [name], to=self.kinds[name])
            self.nodes.append(cast)

    def floats(self, name: str) -> str:
        """Integers as floats."""
        if name not in self._floats:
            array = self.array(name)
            if name in self.centred:
                whole, zero = self.centred[name]
                there = (
                    self.emit("Add", whole, self.constant(zero, "zero")) if zero.any() else whole
                )
                self._floats[name] = there
            elif array is not None:
                self._floats[name] = self.constant(array.astype(np.float32), "constant")
            else:
                self._floats[name] = self.emit("Cast", name, to=TensorProto.FLOAT)
        return self._floats[name]

    def is_zero(self, name: str) -> bool:
        """Is a zero point left out, or zero?"""
        array = self.array(name)
        return not name or (array is not None and not array.any())

    def centre(self, x: str, zero: str, axis: int = 1, block: int = 0) -> str:
        """x - zero."""
        shift = self.array(zero)
        if x in self.centred and (shift is not None or not zero):
            whole, known = self.centred[x]
            if np.array_equal(known, np.float32(0) if shift is None else shift.astype(np.float32)):
                return whole
        if self.is_zero(zero):
            return self.floats(x)
        data, broadcast = self.array(x), self.vector(zero, x, axis, block)
        if data is not None and broadcast in self._constants:
            there = self.array(broadcast)
            assert there is not None
            return self.constant(data.astype(np.float32) - there, "whole")
        return self.emit("Sub", self.floats(x), broadcast)

    def vector(self, name: str, x: str, axis: int, block: int = 0) -> str:
        """A scale or zero point, so that it broadcasts to ``x``: one number, or one for each place
        along ``axis``."""
        array = self.array(name)
        if array is None:
            return self.floats(name) if name in self.kinds else name
        array = array.astype(np.float32)
        if array.size == 1:
            return self.constant(array.reshape(()), "scale")
        if axis == -1 and array.ndim == 1:
            return self.constant(array, "scale")
        shape = self._shapes.get(x)
        if shape is None:
            raise ValueError("a scale for each channel of a computed tensor")
        if block:
            array = array.repeat(min(block, shape[axis]), axis)
            array = array[tuple(slice(size) for size in shape)]
        elif array.ndim == 1:
            array = array.reshape(_along(axis, shape))
        return self.constant(array, "scale")

    def _limits(self, x: str, zero: str) -> tuple[float, float]:
        """What x - zero lies between."""
        data, shift = self.array(x), self.array(zero)
        kind = self.kinds.get(x, 0)
        if not kind and zero in self._constants:
            kind = self._constants[zero].data_type
        if data is not None and data.size:
            low, high = float(data.min()), float(data.max())
        else:
            low, high = _RANGES.get(kind, (-np.inf, np.inf))
        if shift is None:
            return (low, high) if not zero else (low - high, high - low)
        return low - float(shift.max()), high - float(shift.min())

    # --- scales ---

    def _check_scale(self, name: str) -> None:
        array = self.array(name)
        if array is not None and not (np.isfinite(array).all() and (array > 0).all()):
            raise MisfitError(f"scale {array.tolist()}: scales are positive numbers")

    def dequantise(
        self, x: str, scale: str, zero: str, axis: int = 1, into: str = "", block: int = 0
    ) -> str:
        """(x - zero) * scale."""
        self._check_scale(scale)
        whole, scales = self.centre(x, zero, axis, block), self.array(scale)
        result = self.emit("Mul", whole, self.vector(scale, x, axis, block), into=into)
        if scales is not None and scales.ndim < 2 and not block:
            low, high = self._limits(x, zero)
            self.scaled[result] = Scaled(
                whole, scales.astype(np.float32).reshape(-1), low, high, axis
            )
        return result

    def scale(self, numbers: Scaled, into: str) -> None:
        """The floats that are these whole numbers times their scales."""
        shape = () if numbers.uniform else numbers.along
        factor = self.constant(numbers.scales.reshape(shape), "scale")
        self.emit("Mul", numbers.whole, factor, into=into)
        self.scaled[into] = numbers

    def sum(
        self, op: str, x: Scaled, weights: Scaled, bias: Scaled | None, get: dict[str, Any]
    ) -> Scaled | None:
        """One of ``SUMS`` of whole numbers; None where it may not be exact, or has scales that it
        cannot take out. Raises ValueError for a bias that is not in steps of both scales."""
        data = self.array(weights.whole)
        plain = get.get("alpha", 1.0) == get.get("beta", 1.0) == 1.0 and not get.get("transA", 0)
        if data is None or data.ndim < 2 or not x.uniform or x.exact or not plain:
            return None
        out = {"Conv": 0, "ConvTranspose": 1, "MatMul": data.ndim - 1}.get(op, 1)
        if op == "Gemm":
            out = 0 if get.get("transB", 0) else 1
        split = op == "ConvTranspose" and get.get("group", 1) > 1
        rows = op in ("Gemm", "MatMul")
        if not weights.uniform and (weights.axis % data.ndim != out or split or not data.ndim):
            return None
        if op == "MatMul" and data.ndim != 2:
            return None
        scales = (x.scales * weights.scales).astype(np.float32)
        others = tuple(axis for axis in range(data.ndim) if axis != out)
        most = x.most * float(np.abs(data.astype(np.float64)).sum(others).max(initial=0))
        inputs = [x.whole, weights.whole]
        if bias is not None:
            if not _same_steps(bias.scales, scales):
                return None
            inputs.append(bias.whole)
        if not most <= _EXACT:  # a larger bias is rounded in onnxruntime too, if only once
            return None
        whole = self.emit("Round", self.emit(op, *inputs, **get))
        along = (-1,) if rows else (-1, *[1] * (data.ndim - 2))
        return Scaled(whole, scales, -most, most, along=along, exact=True)

    def concat(self, names: Sequence[str], into: str, **attributes: Any) -> bool:
        """Concat of floats that are whole numbers times the same scale."""
        parts = [self.scaled.get(name) for name in names]
        known = [each for each in parts if each is not None and each.uniform and not each.exact]
        if (
            not known
            or len(known) < len(parts)
            or any(each.scales[0] != known[0].scales[0] for each in known)
        ):
            return False
        whole = self.emit("Concat", *(each.whole for each in known), **attributes)
        low, high = min(each.low for each in known), max(each.high for each in known)
        self.scale(known[0]._replace(whole=whole, low=low, high=high), into)
        return True

    # --- rounding ---

    def quantise(
        self, x: str, scale: str, zero: str, into: str, axis: int = 1, kind: int = 0
    ) -> None:
        """round(x / scale) + zero within its type."""
        self._check_scale(scale)
        kind = self._kind(zero) or kind or TensorProto.UINT8
        if x in self._shapes:
            self._shapes[into] = self._shapes[x]
        known, step = self.scaled.get(x), self.number(scale)
        if known is not None and step is not None and known.exact:
            self.requantise(known, step, zero, into)
        elif known is not None and step is not None and known.uniform and known.scales[0] == step:
            self._clip(known.whole, zero, kind, into, axis, (known.low, known.high))
        else:
            places = self.emit("Round", self.emit("Div", x, self.vector(scale, x, axis)))
            self._clip(places, zero, kind, into, axis, x=x)

    def requantise(self, numbers: Scaled, step: np.float32, zero: str, into: str) -> None:
        """Sums in steps of another scale: times one number, which is rounded as onnxruntime's
        kernels do it."""
        factors = (numbers.scales / step).reshape(() if numbers.uniform else numbers.along)
        places = self.emit("Mul", numbers.whole, self.constant(factors, "scale"))
        kind = self._kind(zero) or TensorProto.UINT8
        self._clip(self.emit("Round", places), zero, kind, into, 1)

    def place(self, x: str, zero: np.float32, kind: int, into: str) -> None:
        """round(x) within a type, where x has the zero point already: added before, it makes
        other numbers even."""
        low, high = _RANGES[kind]
        limits = self.constant(low), self.constant(high)
        places = self.emit("Clip", self.emit("Round", x), *limits)
        if zero:
            places = self.emit("Sub", places, self.constant(zero, "zero"))
        self.kinds[into], self.centred[into] = kind, (places, np.asarray(zero, np.float32))

    def _kind(self, zero: str) -> int:
        if zero in self._constants:
            return self._constants[zero].data_type
        return self.kinds.get(zero, 0)

    def _clip(
        self,
        places: str,
        zero: str,
        kind: int,
        into: str,
        axis: int,
        limits: tuple[float, float] = (-np.inf, np.inf),
        x: str = "",
    ) -> None:
        """Whole numbers, without a zero point, within a type."""
        low, high = _RANGES[kind]
        shift = np.zeros(()) if self.is_zero(zero) else self.array(zero)
        if shift is None:  # computed
            carried = self.carry(into, kind)
            places = self.emit("Add", places, self.vector(zero, x, axis))
            self.emit("Clip", places, self.constant(low), self.constant(high), into=carried)
            return
        zeros = shift.astype(np.float32)
        if zeros.size == 1:
            least, most = low - zeros.reshape(()), high - zeros.reshape(())
            if limits[0] < least or limits[1] > most:
                places = self.emit("Clip", places, self.constant(least), self.constant(most))
            self.kinds[into], self.centred[into] = kind, (places, zeros.reshape(()))
            return
        along = zeros.reshape(_along(axis, self._shapes[x]))
        places = self.emit("Max", places, self.constant(low - along))
        places = self.emit("Min", places, self.constant(high - along))
        self.emit("Add", places, self.constant(along), into=self.carry(into, kind))


def _along(axis: int, shape: Sequence[int]) -> list[int]:
    """The shape of a vector that lies along an axis."""
    return [-1 if at == axis % len(shape) else 1 for at in range(len(shape))]


def _same_steps(found: np.ndarray, wanted: np.ndarray) -> bool:
    """Are scales of a bias those of the sums? They are stored in float32."""
    if found.size not in (1, wanted.size):
        return False
    return bool(np.allclose(found, wanted, rtol=1e-5, atol=0))
