"""Functions of values, as OpenCL C: the one table from which kernels are written.

``{0}``, ``{1}``, ``{2}`` are the arguments and ``V`` the vector type. A truth value is 0 or 1.
Comparisons instead of fmin and fmax: PoCL splits those into 128-bit pieces, and they drop NaN. Here
NaN passes through from either argument, as it does in onnxruntime. ``UNIT(V, g)`` is g between 0
and 1, ``ERF(x)`` the error function: kernels/functions.cl.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Function:
    """``finite``: zeros and any finite value stay finite, so padding lanes need no mask after it.

    ``onnx`` is the operator of one tensor that it is, and ``attributes`` are that operator's, with
    their defaults: the arguments behind the tensor.
    """

    code: str
    finite: bool
    onnx: str
    attributes: tuple[tuple[str, float], ...]


def _of(code: str, onnx: str = "", *, finite: bool = True, **attributes: float) -> Function:
    return Function(code, finite, onnx, tuple(attributes.items()))


def _truth(condition: str, onnx: str = "") -> Function:
    return _of(f"({condition} ? (V)(1.0f) : (V)(0.0f))", onnx)


def extreme(comparison: str) -> str:
    """The larger (">") or smaller ("<") of {0} and {1}, NaN if either is."""
    return f"((({{0}} {comparison} {{1}}) | ({{0}} != {{0}})) ? {{0}} : {{1}})"


_SOFTPLUS = "log1p(exp(-fabs({0}))) + ({0} > (V)(0.0f) ? {0} : (V)(0.0f))"
_GELU_TANH = "tanh({0} * (V)(0.7978845608f) * ((V)(1.0f) + (V)(0.044715f) * {0} * {0}))"

FUNCTIONS: dict[str, Function] = {
    # of two or three tensors
    "add": _of("{0} + {1}"),
    "sub": _of("{0} - {1}"),
    "mul": _of("{0} * {1}"),
    "div": _of("{0} / {1}", finite=False),
    "sub_product": _of("fma(-{1}, {2}, {0})"),
    "pow": _of("pow({0}, {1})", finite=False),
    "mod": _of("fmod({0}, {1})", finite=False),
    "min": _of(extreme("<").format("{1}", "{0}")),
    "max": _of(extreme(">").format("{1}", "{0}")),
    "equal": _truth("{0} == {1}"),
    "less": _truth("{0} < {1}"),
    "less_or_equal": _truth("{0} <= {1}"),
    "greater": _truth("{0} > {1}"),
    "greater_or_equal": _truth("{0} >= {1}"),
    "and": _of("{0} * {1}"),
    "or": _of("({1} > {0} ? {1} : {0})"),
    "xor": _truth("{0} != {1}"),
    "where": _of("({0} != (V)(0.0f) ? {1} : {2})"),
    # of one tensor, and numbers
    "identity": _of("{0}"),
    "relu": _of("({0} < (V)(0.0f) ? (V)(0.0f) : {0})", "Relu"),
    "prelu": _of("({0} < (V)(0.0f) ? {0} * {1} : {0})", "LeakyRelu", alpha=0.01),
    "clip": _of("({0} < {1} ? {1} : ({0} > {2} ? {2} : {0}))"),
    "sigmoid": _of("(V)(1.0f) / ((V)(1.0f) + exp(-{0}))", "Sigmoid"),
    "silu": _of("{0} / ((V)(1.0f) + exp(-{0}))"),
    "swish": _of("{0} / ((V)(1.0f) + exp(-{1} * {0}))", "Swish", alpha=1.0),
    "hard_sigmoid": _of("UNIT(V, {0} * {1} + {2})", "HardSigmoid", alpha=0.2, beta=0.5),
    "hard_swish": _of("{0} * UNIT(V, {0} * {1} + {2})", "HardSwish", alpha=1 / 6, beta=0.5),
    "tanh": _of("tanh({0})", "Tanh"),
    "elu": _of(
        "({0} < (V)(0.0f) ? {1} * expm1({0}) : {0})", "Elu", finite=False, alpha=1.0
    ),
    "celu": _of("({0} < (V)(0.0f) ? {1} * expm1({0} / {1}) : {0})", "Celu", alpha=1.0),
    "selu": _of(
        "{2} * ({0} > (V)(0.0f) ? {0} : {1} * expm1({0}))", "Selu",
        alpha=1.67326319217681884765625, gamma=1.05070102214813232421875,
    ),
    "softplus": _of(_SOFTPLUS, "Softplus", finite=False),
    "softsign": _of("{0} / ((V)(1.0f) + fabs({0}))", "Softsign"),
    "mish": _of(f"{{0}} * tanh({_SOFTPLUS})", "Mish"),
    "gelu": _of("(V)(0.5f) * {0} * ((V)(1.0f) + ERF({0} * (V)(0.70710678118f)))"),
    "gelu_tanh": _of(f"(V)(0.5f) * {{0}} * ((V)(1.0f) + {_GELU_TANH})"),
    "thresholded_relu": _of(
        "({0} > {1} ? {0} : (V)(0.0f))", "ThresholdedRelu", alpha=1.0
    ),
    "shrink": _of(
        "({0} < -{1} ? {0} + {2} : ({0} > {1} ? {0} - {2} : (V)(0.0f)))", "Shrink",
        lambd=0.5, bias=0.0,
    ),
    "abs": _of("fabs({0})", "Abs"),
    "neg": _of("-{0}", "Neg"),
    "sign": _of("({0} != {0} ? {0} : sign({0}))", "Sign"),
    "floor": _of("floor({0})", "Floor"),
    "ceil": _of("ceil({0})", "Ceil"),
    "round": _of("rint({0})", "Round"),
    "trunc": _of("trunc({0})"),
    "square": _of("{0} * {0}"),
    "sqrt": _of("sqrt({0})", "Sqrt", finite=False),
    "reciprocal": _of("(V)(1.0f) / {0}", "Reciprocal", finite=False),
    "exp": _of("exp({0})", "Exp", finite=False),
    "log": _of("log({0})", "Log", finite=False),
    "erf": _of("ERF({0})", "Erf"),
    "sin": _of("sin({0})", "Sin"),
    "cos": _of("cos({0})", "Cos"),
    "tan": _of("tan({0})", "Tan", finite=False),
    "asin": _of("asin({0})", "Asin", finite=False),
    "acos": _of("acos({0})", "Acos", finite=False),
    "atan": _of("atan({0})", "Atan"),
    "sinh": _of("sinh({0})", "Sinh", finite=False),
    "cosh": _of("cosh({0})", "Cosh", finite=False),
    "asinh": _of("asinh({0})", "Asinh"),
    "acosh": _of("acosh({0})", "Acosh", finite=False),
    "atanh": _of("atanh({0})", "Atanh", finite=False),
    "not": _of("(V)(1.0f) - {0}", "Not"),
    "is_nan": _truth("isnan({0})", "IsNaN"),
    "is_infinite": _of(
        "(isinf({0}) ? ({0} < (V)(0.0f) ? {1} : {2}) : (V)(0.0f))", "IsInf",
        detect_negative=1.0, detect_positive=1.0,
    ),
    "is_true": _truth("{0} != (V)(0.0f)"),
}  # fmt: skip
