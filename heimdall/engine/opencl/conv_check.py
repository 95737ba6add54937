"""Refuses convolutions whose tensors do not fit each other."""

from __future__ import annotations

import numpy as np

from heimdall.engine.opencl.conv_spec import Layer
from heimdall.engine.opencl.launch import Traits
from heimdall.errors import ModelError


def check(layer: Layer, traits: Traits) -> None:
    """Refuse what the kernels would silently compute wrong."""
    spec, x, y, residual = layer.spec, layer.x, layer.y, layer.residual
    weights, bias = layer.weights, layer.bias
    if x.channels % spec.groups or y.channels % spec.groups:
        raise ModelError(f"{spec.groups} groups do not divide {x.channels} -> {y.channels}")
    if spec.order and sorted(spec.order) != list(range(x.channels)):
        raise ModelError(f"an order of {len(spec.order)} channels for {x.channels}")
    ends = (x.channels, y.channels) if spec.transposed else (y.channels, x.channels)
    expected = (ends[0], ends[1] // spec.groups, *spec.kernel)
    if weights.shape != expected:
        raise ModelError(f"convolution weights of shape {weights.shape}, expected {expected}")
    if bias is not None and np.shape(bias) != (y.channels,):
        raise ModelError(f"bias of shape {np.shape(bias)}, expected ({y.channels},)")
    act = spec.activation
    if len(act.lanes) not in (0, 1, y.channels):
        raise ModelError(f"{len(act.lanes)} values of {act.kind} for {y.channels} channels")
    size = spec.output_size(x.height, x.width)
    extra = (y.height - size[0], y.width - size[1])
    room = max(spec.strides[0], spec.dilations[0]), max(spec.strides[1], spec.dilations[1])
    fits = extra == (0, 0)
    if spec.transposed:
        fits = all(0 <= more < limit for more, limit in zip(extra, room, strict=True))
    if not fits:
        raise ModelError(f"output {(y.height, y.width)} of a convolution that computes {size}")
    halo = spec.required_halo((x.height, x.width), (y.height, y.width))
    if any(have < need for have, need in zip(x.halo, halo, strict=True)):
        raise ModelError(f"convolution input has a halo of {x.halo} but reads {halo}")
    if residual is not None:
        same = (residual.channels, residual.height, residual.width, residual.block)
        if same != (y.channels, y.height, y.width, y.block):
            raise ModelError(f"residual {residual} does not lie like the output {y}")
    for layout in (y, residual):
        planar = layout is None or layout.block in (1, traits.block, layout.channels)
        if not planar:
            raise ModelError(f"output block of {layout} must be 1, {traits.block} or all channels")
