"""The account of a recorded run: every instant of an inference is counted, once."""

from __future__ import annotations

import pytest

from benchmarks import worst_case
from heimdall.lab.simulator.simulate import simulate
from heimdall.runtime.telemetry.trace import read_recording


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    simulate("shopping", "lg-v50", "max-total", seconds=6, trace=path)
    return read_recording(path)


def test_all_of_a_latency_is_accounted_for(recording):
    found = worst_case.account(recording, "style")
    assert len(found) > 5
    for each in found:
        assert sum(each.spent_ns.values()) == each.end_ns - each.start_ns
        assert each.spent_ns[worst_case.OWN] > 0.4 * (each.end_ns - each.start_ns)
        assert each.spent_ns[worst_case.OWN_POOL] > 0  # its pads
    assert any(each.spent_ns.get(worst_case.BEFORE) and each.behind for each in found)


def test_the_warm_up_is_left_out(recording):
    found = worst_case.account(recording, "style")
    later = worst_case.account(recording, "style", 5)
    assert 0 < len(later) < len(found)
    assert later == found[-len(later) :]


def test_the_slowest_are_named_beside_the_bound(recording):
    bound = worst_case.bound_ms(recording, "style")
    assert 90 < bound < 100  # 60 ms, and a frame's interval
    lines = worst_case.table(worst_case.account(recording, "style"), bound).splitlines()
    assert lines[2].startswith("| mean of ")
    assert [line.split("|")[1].strip() for line in lines[3:]] == [
        f"{number}. slowest" for number in (1, 2, 3)
    ]


def test_chunks_take_what_the_profile_says_and_a_little_more(recording):
    gpu = worst_case.useful(recording, 5)
    assert 1 < gpu["took_ms"] / gpu["profile_ms"] < 1.3
