"""Devices with several processors: their files, and the plans that follow."""

from __future__ import annotations

from pathlib import Path

import pytest

from heimdall.errors import ConfigError
from heimdall.lab.simulator.several import alone_ns, load_several, several_names
from heimdall.lab.simulator.together.device import load_device_for_requests

VALID = """
title = "Three"
[processors.npu]
name = "Fast"
kind = "npu"
noise = 0.1
[processors.gpu]
name = "Chip"
kind = "gpu"
[processors.cpu]
name = "Cores"
lanes = 2
[networks.eye]
ops = 10
ms = { npu = 10, gpu = 40, cpu = 80 }
unsupported = { npu = [[4, 6]], gpu = [[5, 6]] }
cut_ms = 1
"""


@pytest.fixture
def load(tmp_path: Path):
    def write_and_load(text: str = VALID):
        path = tmp_path / "three.toml"
        path.write_text(text, encoding="utf-8")
        return load_several(str(path))

    return write_and_load


@pytest.mark.parametrize("name", several_names())
def test_bundled_devices_are_valid(name):
    device = load_device_for_requests(name)
    assert device.list()
    for network in device.networks:
        assert alone_ns(device.stage(network, "whole")) > 0


def test_processors_are_in_their_order(load):
    device = load()
    assert [each.id for each in device.list()] == ["npu", "gpu", "cpu"]
    assert [each.lanes for each in device.list()] == [1, 1, 2]
    assert device.noise()["npu"] == 0.1


def test_a_plan_has_each_ops_latency_on_each_processor_that_supports_it(load):
    plan = load().stage("eye", "whole")
    on = dict(plan.on)
    assert [op for op, ns in enumerate(on["npu"]) if ns is None] == [4, 5]
    assert [op for op, ns in enumerate(on["gpu"]) if ns is None] == [5]
    assert sum(ns for ns in on["cpu"] if ns) == pytest.approx(80e6, rel=1e-6)
    assert plan.op_ns[4] == on["gpu"][4]
    assert plan.cut_ns == (1_000_000,) * 10
    assert plan.chunks == ((0, 10),)


def test_alone_a_network_takes_the_shortest_way(load):
    plan = load().stage("eye", "whole")
    on = dict(plan.on)
    best_ns = sum(on["npu"][:4]) + on["cpu"][4] + on["cpu"][5] + sum(on["npu"][6:]) + 2e6
    other_ns = sum(on["npu"][:4]) + on["gpu"][4] + on["cpu"][5] + sum(on["npu"][6:]) + 3e6
    assert alone_ns(plan) == min(best_ns, other_ns)


def test_policies_that_know_two_processors_get_what_the_gpu_lacks_as_fallback(load):
    device = load()
    plan = device.stage_of_two("eye")
    assert [each.id for each in device.two()] == ["gpu", "cpu"]
    assert [op for op, falls_back in enumerate(plan.fallback) if falls_back] == [5]
    assert plan.cpu_ns == pytest.approx(80e6, rel=1e-6)


@pytest.mark.parametrize(
    ("said", "instead", "message"),
    [
        ("npu = 10", "npu = 0", r"networks\.eye\.ms\.npu: .*above 0"),
        ("npu = 10", "npu = nan", r"networks\.eye\.ms\.npu: .*"),
        ("npu = 10", "tpu = 10", r"unknown processor of networks\.eye 'tpu'.*cpu, gpu, npu"),
        (", cpu = 80 }", " }", r"op 5 is supported by no processor"),
        ("[[4, 6]]", "[[4, 11]]", r"unsupported\.npu: ranges of 0 to 10 ops"),
        ("[[4, 6]]", "[[6, 4]]", r"unsupported\.npu: ranges"),
        ("cut_ms = 1", "cut_ms = -1", r"networks\.eye\.cut_ms"),
        ("cut_ms = 1", "cut_ms = [1, 2]", r"cut_ms: a cost for each of the 10 ops"),
        ("lanes = 2", "lanes = 0", r"processors\.cpu\.lanes: .*above 0"),
        ("noise = 0.1", "noise = -1", r"processors\.npu\.noise"),
        ("ops = 10", "ops = 0", r"networks\.eye\.ops"),
        ("ops = 10", "opps = 10", r"networks\.eye: unknown key 'opps'; did you mean ops"),
    ],
)
def test_what_is_impossible_is_refused_by_file_and_field(load, said, instead, message):
    assert said in VALID
    with pytest.raises(ConfigError, match=rf"device profile .*three\.toml: .*{message}"):
        load(VALID.replace(said, instead))


def test_an_unknown_kind_of_processor_is_refused(load):
    with pytest.raises(ConfigError, match="unknown kind 'tpu'"):
        load(VALID.replace('"npu"', '"tpu"')).list()


def test_a_device_without_a_gpu_is_nothing_for_policies_that_need_one(load):
    device = load(VALID.replace("gpu", "dsp"))
    with pytest.raises(ConfigError, match="no processor 'gpu'"):
        device.two()
    text = VALID.replace("cpu = 80", "dsp = 80").replace(
        "[networks.eye]", '[processors.dsp]\nname = "D"\nkind = "dsp"\n[networks.eye]'
    )
    with pytest.raises(ConfigError, match="op 5 of 'eye' is supported by neither 'gpu' nor 'cpu'"):
        load(text).stage_of_two("eye")
