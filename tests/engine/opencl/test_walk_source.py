"""Kernels as functions of one program."""

from __future__ import annotations

import pytest

from heimdall.engine.opencl.conv_source import KERNELS
from heimdall.engine.opencl.launch import Kernel
from heimdall.engine.opencl.walk_source import parameters, unit, walker

SOURCE = """
#define TWICE(v) (2 * (v))
typedef float4 V;
static V helped(V v) { return TWICE(v); }
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void first(
    __global const float *restrict x,  // (a comment, with a comma)
    __global float *y,
    int count, const float factor)
{
    y[get_global_id(0)] = factor * x[get_global_id(0)] + count;
}
__kernel void second(__global float *y, int a, int b) { y[a] = helped((V)(b)).x; }
"""


def test_parameters_are_found_between_comments():
    assert parameters(SOURCE, "first") == [
        ("__global const float *restrict ", "x"),
        ("__global float *", "y"),
        ("int ", "count"),
        ("const float ", "factor"),
    ]
    assert [name for _, name in parameters(SOURCE, "second")] == ["y", "a", "b"]


def test_every_name_of_a_unit_is_its_own_and_no_macro_is_left():
    text = unit(SOURCE, 7, ["first", "second"])
    for name in ("V", "helped", "first", "second"):
        assert f"#define {name} {name}_7" in text
        assert f"#undef {name}" in text
    assert "#undef TWICE" in text
    assert "__kernel" not in text
    assert "run_first_7(" in text
    assert "run_second_7(" in text


def test_kernels_of_one_source_share_it():
    kernels = [Kernel.of(SOURCE, "first"), Kernel.of(SOURCE, "second")]
    text = walker(kernels, 2, 1).source
    assert text.count("typedef float4 V;") == 1
    assert "case 1: run_second_0" in text
    assert "buffer1" in text
    assert "buffer2" not in text


def test_the_identity_changes_with_kernels_buffers_and_whether_cores_share():
    first, second = Kernel.of(SOURCE, "first"), Kernel.of(SOURCE, "second")
    identities = {
        walker(kernels, buffers, units).identity
        for kernels, buffers, units in (
            ([first], 0, 1), ([second], 0, 1), ([first, second], 0, 1), ([first], 1, 1),
            ([first], 0, 2),
        )
    }  # fmt: skip
    assert len(identities) == 5
    assert walker([first], 0, 2).identity == walker([first], 0, 3).identity


@pytest.mark.parametrize("path", sorted(KERNELS.glob("*.cl")), ids=lambda path: path.stem)
def test_kernels_use_nothing_that_a_function_of_one_work_item_does_not_have(path):
    text = path.read_text(encoding="utf-8")
    assert "barrier(" not in text
    assert "get_local" not in text
    assert "__local" not in text
