"""Single networks: how they are cut."""

from __future__ import annotations

import pytest

from benchmarks.paper import networks
from heimdall.lab.simulator.device import load_device


@pytest.fixture(scope="module")
def phone():
    return networks.of_phone(load_device("lg-v50"))


def test_networks_of_a_phone_are_those_of_table_2(phone):
    style = phone["StyleTransfer"]
    assert (style["ops"], style["fallback_ops"]) == (120, 14)
    assert style["ms"] == pytest.approx(60, abs=0.01)
    assert style["gpu_ms"] == pytest.approx(60 * 106 / 120, abs=0.01)
    assert phone["RetinaFace"]["gflop"] == 9.54


def test_op_by_op_takes_13_to_70_percent_longer_on_a_phone(phone):
    more = networks.spread(phone, "1")
    assert 0.10 < more["min"] < more["mean"] < more["max"] < 0.75


def test_longer_pieces_cost_less(phone):
    for network in phone.values():
        longer = [network["longer"][way] for way in networks.WAYS]
        assert longer[:5] == sorted(longer[:5], reverse=True)
        assert min(longer) >= 1


def test_a_static_chunk_waits_at_each_of_its_fallback_ops(phone):
    style = phone["StyleTransfer"]
    assert style["chunks"] == 2
    assert style["longer"]["chunks"] >= 1


def test_networks_that_are_short_do_not_count():
    assert networks.spread({"quick": {"ms": 5.0, "longer": {"1": 9.0}}}, "1") is None
    assert networks.short_ops({"quick": {"ms": 5.0, "short_ops": 1.0}}) is None
