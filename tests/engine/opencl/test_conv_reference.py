"""The reference of convolutions: every activation as the kernels compute it."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from heimdall.engine.opencl import activation, tuner
from heimdall.engine.opencl.activation import Activation
from heimdall.engine.opencl.conv import plan_conv
from heimdall.engine.opencl.conv_reference import reference
from heimdall.engine.opencl.conv_spec import ConvSpec, Layer
from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.engine.opencl.layout import Layout
from heimdall.engine.opencl.program import Programs

LANES = tuple(0.1 * each for each in range(16))


@pytest.fixture(scope="module")
def engine():
    return OpenCLEngine(keep_kernels=False)


def of_kernels(engine, layer):
    """What the default kernels compute, what is wanted, and the largest difference allowed."""
    programs = Programs(engine.context, keep=False, prefetch=engine.abilities.prefetch)
    bench = tuner._Bench(engine, programs, layer)
    variant = bench.prepare(plan_conv(layer, engine.traits, {}))
    return bench.result(variant), bench.wanted()


@pytest.mark.parametrize("kind", get_args(activation.Kind))
def test_kernels_and_reference_agree(engine, kind):
    lanes = LANES if kind in activation._OF_LANES else ()
    made = Activation(kind, -3.0 if kind in ("clip", "whole", "requantised") else 0.2, 3.0, lanes)
    spec = ConvSpec((1, 1), activation=made)
    block = engine.traits.block
    layout = Layout(16, 5, 7, block)
    weights = np.random.default_rng(1).standard_normal((16, 16, 1, 1)).astype(np.float32)
    found, wanted = of_kernels(engine, Layer(spec, layout, layout, weights, np.zeros(16, "f")))
    off = np.abs(found - wanted)
    assert (off > 1e-4).mean() <= (0.01 if made.exact else 0)  # a half may be rounded either way


def test_transposed_strided_and_after_a_residual():
    random = np.random.default_rng(2)
    x, r = random.standard_normal((4, 5, 6), "f"), random.standard_normal((2, 10, 12), "f")
    weights = random.standard_normal((4, 2, 2, 2), "f")
    spec = ConvSpec((2, 2), (2, 2), transposed=True, activation=Activation("relu"))
    layer = Layer(spec, Layout(4, 5, 6, 4), Layout(2, 10, 12, 4), weights)
    plain = np.zeros((2, 10, 12), "f")
    for row, column in np.ndindex(2, 2):
        plain[:, row::2, column::2] = np.einsum("io,ihw->ohw", weights[:, :, row, column], x)
    assert reference(layer, x, r) == pytest.approx(np.maximum(plain + r, 0), abs=1e-5)
