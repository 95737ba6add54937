import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.engine.opencl import activation
from heimdall.engine.opencl.conv_pass import passes
from heimdall.engine.opencl.conv_spec import ConvSpec

pairs = st.tuples(st.integers(1, 4), st.integers(1, 4))
pads = st.tuples(*[st.integers(0, 3)] * 4)


@given(pairs, pairs, pairs, pads, st.booleans(), pairs, st.tuples(*[st.integers(0, 3)] * 2))
def test_passes_read_the_picture_and_its_required_halo_only(
    kernel, strides, dilations, pads, transposed, size, more
):
    spec = ConvSpec(kernel, strides, dilations, pads, transposed=transposed)
    size = (size[0] + 9, size[1] + 9)
    out = spec.output_size(*size)
    if transposed:
        out = (
            out[0] + more[0] % max(strides[0], dilations[0]),
            out[1] + more[1] % max(strides[1], dilations[1]),
        )
    if min(out) < 1:
        return
    halo = spec.required_halo(size, out)
    written = np.zeros(out, int)
    taps = 0
    for part in passes(spec, np.zeros((1, 1, *kernel), np.float32), out):
        taps += part.taps[0] * part.taps[1]
        for axis in (0, 1):
            if not part.weights.size:
                continue
            last = part.first[axis] + part.stride[axis] * (part.out_size[axis] - 1)
            last += part.tap_step[axis] * (part.taps[axis] - 1)
            assert part.first[axis] >= -halo[axis]
            assert last < size[axis] + halo[axis + 2]
        rows = slice(part.out_start[0], None, part.out_step[0])
        columns = slice(part.out_start[1], None, part.out_step[1])
        assert written[rows, columns].shape == part.out_size
        written[rows, columns] += 1
    assert np.all(written == 1)
    assert taps <= kernel[0] * kernel[1]


def test_padding_of_one_needs_a_halo_of_one():
    spec = ConvSpec((3, 3), pads=(1, 1, 1, 1))
    assert spec.output_size(8, 9) == (8, 9)
    assert spec.required_halo((8, 9), (8, 9)) == (1, 1, 1, 1)


def test_a_strided_layer_may_leave_its_last_padding_unread():
    spec = ConvSpec((3, 3), (2, 2), pads=(1, 1, 1, 1))
    assert spec.required_halo((8, 8), (4, 4)) == (1, 1, 0, 0)


def test_unknown_activations_are_refused():
    with pytest.raises(ValueError, match="choose one of"):
        activation.Activation("swoosh")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="values of lanes"):
        activation.Activation("prelu")
