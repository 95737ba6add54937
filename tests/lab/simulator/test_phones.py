"""Phones as devices for requests."""

from __future__ import annotations

import pytest

from heimdall.errors import ConfigError
from heimdall.lab.simulator.device import load_device, phone_names
from heimdall.lab.simulator.several import alone_ns
from heimdall.lab.simulator.together.device import load_device_for_requests
from heimdall.lab.standins import families
from heimdall.schedulers.expected import StageCosts

MS = 1_000_000


@pytest.mark.parametrize("name", phone_names())
def test_a_network_takes_as_long_as_beside_frames(name):
    phone, several = load_device(name), load_device_for_requests(name)
    for reference, network in phone.networks.items():
        stage = several.stage_of_two(reference)
        costs = StageCosts(stage)
        assert costs.gpu_ns(0, costs.ops) if not any(stage.fallback) else True
        on_gpu = sum(ns for ns, back in zip(stage.op_ns, stage.fallback, strict=True) if not back)
        assert on_gpu == pytest.approx((network.ms - network.fallback_ms) * MS, rel=0.05)
        assert stage.cpu_ns == pytest.approx(phone.cpu_ms(network) * MS, rel=0.01)


def test_a_network_that_is_built_here_takes_what_its_work_takes_of_what_the_gpu_sustains():
    phone = load_device("lg-v50")
    assert phone.gpu_gflops == pytest.approx(61.7, abs=0.1)  # Table 3 over Table 2
    network = phone.network("xrbench:midas-small")
    assert network.ms == pytest.approx(
        2000 * families.network("xrbench:midas-small").gmac / 61.7, rel=0.01
    )
    alone = alone_ns(load_device_for_requests("lg-v50").stage("xrbench:midas-small", "whole"))
    assert alone == pytest.approx(network.ms * MS, rel=0.01)


def test_ops_that_the_gpu_lacks_are_the_cpus():
    stage = load_device_for_requests("lg-v50").stage("RetinaFace", "whole")
    on = dict(stage.on)
    assert on["gpu"].count(None) == load_device("lg-v50").networks["RetinaFace"].cpu_ops
    assert None not in on["cpu"]


def test_a_network_that_is_not_known_is_refused():
    with pytest.raises(ConfigError, match="xrbench"):
        load_device("lg-v50").network("xrbench:none")
    with pytest.raises(ConfigError, match="lg-v50"):
        load_device_for_requests("lg-v51")
