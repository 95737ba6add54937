"""How long ops take on a GPU, alone and together."""

from __future__ import annotations

import pytest

from heimdall.errors import ConfigError
from heimdall.lab.simulator.several import several_names
from heimdall.lab.simulator.together.device import (
    TogetherDevice,
    load_device_for_requests,
    load_together,
)
from heimdall.lab.simulator.together.gpu import ConcurrentGpu, OpTimes, stage_took
from heimdall.lab.simulator.together.layers import IMAGE, Builder
from heimdall.lab.simulator.together.networks import network
from heimdall.vocabulary.events import Group, RunTogether

# 1 GFLOP/s, 1 MB/s, 1 us a launch
SLOW_MEMORY = ConcurrentGpu(1e9, 1e6, 1e3, 100, 0.1)


def ops(*heights):
    net = Builder((1, 64, 32))
    for height in heights:
        net.conv(IMAGE, 1, (height, 1))
    return net.network("made up")


def test_an_op_takes_its_arithmetic_or_its_memory_and_its_launch():
    op = ops(1).ops[0]
    assert op.moved_bytes == 4 * (2 * 64 * 32 + 1)
    assert SLOW_MEMORY.alone_ns(op) == pytest.approx(op.moved_bytes * 1e3 + 1e3)
    fast_memory = ConcurrentGpu(1e9, 1e12, 1e3, 100, 0.1)
    assert fast_memory.alone_ns(op) == pytest.approx(op.flops + 1e3)


def test_an_op_fills_what_its_work_groups_fill():
    op = ops(1).ops[0]  # 2048 outputs: one work-group
    assert SLOW_MEMORY.occupancy(op) == 0.01
    assert ConcurrentGpu(1, 1, 0, 1, 0).occupancy(network("ResNet-50").ops[0]) == 1


def test_a_stage_takes_its_longest_group_or_as_long_as_the_gpu_is_full():
    times = OpTimes(SLOW_MEMORY, ops(1, 1, 1))
    one = times.ns[0]
    both = stage_took([times.group(((0, 1),)), times.group(((1, 3),))], contention=0.1)
    assert both.ns == pytest.approx(2 * one * 1.1)
    assert both.filled_ns == pytest.approx(3 * one * 0.01)
    full = OpTimes(ConcurrentGpu(1e9, 1e6, 1e3, 1, 0.1), ops(1, 1, 1))
    three = [full.group(((op, op + 1),)) for op in range(3)]
    assert stage_took(three, 0.1).ns == pytest.approx(3 * one * 1.2)


def test_it_is_fitted_to_the_6_ms_of_resnet_50_on_an_rtx_3080():
    times = load_together("top-rtx-3080").times("ResNet-50")
    assert sum(times.ns) / 1e6 == pytest.approx(6.0, abs=0.01)


def test_all_devices_share_the_launch_that_was_fitted():
    devices = [load_device_for_requests(name) for name in several_names()]
    together = [each for each in devices if isinstance(each, TogetherDevice)]
    assert len(together) == 5
    assert len({each.together.launch_us for each in together}) == 1


def test_what_runs_together_takes_its_stages_one_after_the_other():
    device = load_together("top-a100")
    times = device.times("SqueezeNet")
    groups = (Group(0, "a", 0, 0, ((2, 3),)), Group(1, "b", 0, 0, ((0, 1), (1, 2))))
    action = RunTogether("gpu", (groups, groups[:1]), 0, "")
    took = device.took(action, {"a": "SqueezeNet", "b": "SqueezeNet"})
    assert took.ns == pytest.approx((times.ns[0] + times.ns[1]) * 1.05 + times.ns[2])


def test_a_plan_has_the_blocks_of_the_architecture():
    stage = load_together("top-a100").stage("ResNet-50", "blocks")
    assert stage.chunks == network("ResNet-50").blocks
    assert dict(stage.on) == {"gpu": stage.op_ns}


def test_a_profile_that_is_not_one(tmp_path):
    text = (
        'title = "x"\n[processors.gpu]\nname = "x"\nkind = "gpu"\n[together]\npeak_tflops = 0\n'
        "bandwidth_gb_s = 1\nlaunch_us = 1\nwork_groups = 1\ncontention = 0\n"
    )
    (tmp_path / "none.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"together\.peak_tflops: must be above 0"):
        load_device_for_requests(str(tmp_path / "none.toml"))
