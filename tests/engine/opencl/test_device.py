from __future__ import annotations

import pytest

from heimdall.engine import open_engine
from heimdall.errors import ConfigError, DeviceError

pytest.importorskip("pyopencl")
from heimdall.engine.opencl import device


def test_devices_are_chosen_by_index_or_part_of_the_name():
    found = device.devices()
    if not found:
        pytest.skip("no OpenCL device here")
    assert device.select("0") == found[0]
    assert device.select(device.label(found[-1]).lower()) in found
    assert device.select() == found[0]


def test_an_unknown_device_lists_those_that_exist():
    if not device.devices():
        pytest.skip("no OpenCL device here")
    with pytest.raises(DeviceError, match="no OpenCL device matches 'quantum'; choose one of: 0: "):
        device.select("quantum")


def test_without_a_platform_the_error_names_a_package(monkeypatch):
    monkeypatch.setattr(device, "devices", list)
    with pytest.raises(DeviceError, match="pocl-opencl-icd"):
        device.select()


def test_driver_codes_become_names(engine):
    import pyopencl as cl

    with pytest.raises(cl.Error) as raised:
        cl.Buffer(engine.context, cl.mem_flags.READ_WRITE, 0)  # NVIDIA's refuses no other size
    message = str(device.explain(raised.value, "allocating a job"))
    assert message.startswith("OpenCL error INVALID_BUFFER_SIZE while allocating a job")


def test_unknown_engines_list_the_valid_ones():
    with pytest.raises(ConfigError, match="choose one of: null, onnxruntime, opencl"):
        open_engine("cuda")
