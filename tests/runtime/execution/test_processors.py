"""Both engines of a run: which one plays the GPU, and what a run is told about it."""

from __future__ import annotations

import logging
import os

import pytest

from heimdall.engine.null import NullEngine
from heimdall.errors import DeviceError
from heimdall.runtime.execution import processors
from heimdall.runtime.execution.processors import open_processors
from heimdall.system import softgpu


class RealGpu(NullEngine):
    hardware = True


@pytest.fixture
def software() -> softgpu.SoftwareGpu:
    """Everything on all cores, so that the tests after this one are not confined."""
    return softgpu.together(len(getattr(os, "sched_getaffinity", lambda _: "1")(0)))


@pytest.fixture
def opencl(monkeypatch):
    """Decides what opening the OpenCL engine gives."""
    open_engine = processors.open_engine

    def install(answer):
        def opened(name, **options):
            return answer(**options) if name == "opencl" else open_engine(name, **options)

        monkeypatch.setattr(processors, "open_engine", opened)

    return install


def no_opencl(**options):
    raise DeviceError("no OpenCL device")


def test_a_software_gpu_says_how_it_is_confined(software, opencl):
    opencl(lambda device: NullEngine())
    with open_processors(None, software) as found:
        assert found.gpu.name == "null"
        assert found.cpu.processor == "cpu"
        assert found.describe() == software.describe()
        assert found.profile_key == software.profile_key
        assert found.load_limit == software.load_limit


@pytest.mark.parametrize("prioritized", [True, False])
def test_networks_are_low_in_the_driver_unless_that_is_not_wanted(software, opencl, prioritized):
    asked = []

    def answer(device, low=True):
        asked.append(low)
        return NullEngine()

    opencl(answer)
    with open_processors(None, software, prioritized=prioritized):
        assert asked == [prioritized]


def test_a_real_gpu_needs_no_cores(software, opencl, monkeypatch):
    released = []
    monkeypatch.setattr(softgpu.SoftwareGpu, "release", lambda self: released.append(self))
    opencl(lambda device: RealGpu())
    with open_processors(None, software) as found:
        assert found.software is None
        assert found.describe() == found.profile_key == "hardware"
        assert found.load_limit == 1.0
        with found.confined():
            pass
    assert released == [software]


def test_without_opencl_onnxruntime_plays_the_gpu_and_says_so(software, opencl, caplog):
    opencl(no_opencl)
    with caplog.at_level(logging.WARNING), open_processors(None, software) as found:
        assert (found.gpu.name, found.gpu.processor) == ("onnxruntime", "gpu")
    assert "no OpenCL device. Networks run on the CPU by onnxruntime instead." in caplog.text


def test_a_device_asked_for_by_name_is_not_replaced(software, opencl):
    opencl(no_opencl)
    with pytest.raises(DeviceError, match="no OpenCL"), open_processors("Radeon", software):
        pass


def test_a_provider_of_onnxruntime_plays_the_gpu_when_asked_for(software):
    with open_processors("onnxruntime:cpu", software) as found:
        assert found.gpu.describe()["mode"] == "CPUExecutionProvider"
        assert found.profile_key == software.profile_key
