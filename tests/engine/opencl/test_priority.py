"""Networks are low where a driver has hints for it. Here a stand-in has them, beneath which is this
machine's driver."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from heimdall.engine.opencl import priority
from heimdall.engine.opencl.device import devices
from heimdall.errors import DeviceError
from tests.standin_driver import standin_driver

ENGINE = """
    import dataclasses, json
    from heimdall.engine import open_engine
    engine = open_engine("opencl", low={low})
    {more}
    print(json.dumps(dataclasses.asdict(engine.driver_priority)))
"""
KHRONOS, QUALCOMM = "cl_khr_priority_hints cl_khr_throttle_hints", "cl_qcom_priority_hint"
QUEUE, CONTEXT = "queue 4", "context 40cc"


@pytest.fixture
def opened(tmp_path, run_python):
    """``opened(hints)``: what an engine says of its priority, and what it, and the first time the
    trial of its device, asked of the driver."""
    if not devices():
        pytest.skip("no OpenCL here")

    def opened(hints, *, low=True, refuses=False, more=""):
        driver = standin_driver(tmp_path, hints, refuses=refuses)
        before = len(driver.asked)
        said = run_python(ENGINE.format(low=low, more=more), env=driver.environment)
        return said, driver.asked[before:]

    return opened


def test_queues_are_low_by_khronos_hint(opened):
    said, asked = opened(KHRONOS)
    assert said == {"level": "low", "why": ""}
    assert set(asked) == {QUEUE}


def test_a_context_is_low_by_qualcomms_hint(opened):
    said, asked = opened(QUALCOMM)
    assert said == {"level": "low", "why": ""}
    assert set(asked) == {CONTEXT}


def test_a_queue_is_asked_for_where_there_are_both(opened):
    assert set(opened(f"{QUALCOMM} {KHRONOS}")[1]) == {QUEUE}


def test_every_queue_of_an_engine_is_low(opened):
    opened(KHRONOS)
    chunks_and_copies = [QUEUE, QUEUE]
    assert opened(KHRONOS)[1] == chunks_and_copies
    assert opened(KHRONOS, more="beside = engine.beside()")[1] == 2 * chunks_and_copies


def test_none_is_asked_for_where_that_is_not_wanted(opened):
    opened(KHRONOS)
    said, asked = opened(KHRONOS, low=False)
    assert said["level"] is None
    assert asked == []


@pytest.mark.parametrize("hints", [KHRONOS, QUALCOMM])
def test_a_driver_that_refuses_is_used_without(opened, hints):
    said, asked = opened(hints, refuses=True)
    assert said["level"] is None
    assert "INVALID_VALUE" in said["why"] or "refuses a low context" in said["why"]
    assert asked == []


def test_what_computes_on_low_queues_is_right(tmp_path, run_python):
    """The trial's own network: it is refused where the numbers are wrong."""
    driver = standin_driver(tmp_path, KHRONOS)
    code = """
        import json
        from heimdall.engine.opencl.device import select
        from heimdall.engine.opencl.probe import abilities_of
        found = abilities_of(select())
        print(json.dumps([found.priority, found.refused]))
    """
    assert run_python(code, env=driver.environment) == ["cl_khr_priority_hints", ""]


def test_hints_are_named_all_and_those_of_power_asked_for_never():
    device: Any = SimpleNamespace(extensions="cl_khr_fp16 cl_qcom_perf_hint cl_khr_throttle_hints")
    assert priority.hints_of(device) == ["cl_khr_throttle_hints", "cl_qcom_perf_hint"]
    with pytest.raises(DeviceError, match="neither cl_khr_priority_hints nor cl_qcom"):
        priority.extension_of(device)
