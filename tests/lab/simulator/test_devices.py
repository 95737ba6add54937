from __future__ import annotations

import pytest

from heimdall.errors import ConfigError
from heimdall.lab.devices import FOLDER
from heimdall.lab.simulator.device import Device
from heimdall.lab.simulator.devices import MACHINES, device_names, find_device
from heimdall.lab.simulator.measured import MeasuredDevice

XEON = "xeon-2-cores-pocl"


def test_phones_and_measured_machines_are_there_by_name():
    assert {"here", "lg-v50", XEON} <= set(device_names())
    assert isinstance(find_device("lg-v50"), Device)
    assert isinstance(find_device(XEON), MeasuredDevice)


def test_a_file_of_ones_own_may_be_either(tmp_path):
    for path in (MACHINES / f"{XEON}.toml", FOLDER / "lg-v50.toml"):
        copy = tmp_path / "mine.toml"
        copy.write_text(path.read_text())
        assert find_device(str(copy)).name == "mine"


def test_an_unknown_device_lists_the_valid_ones():
    with pytest.raises(ConfigError, match=f"lg-v50, pixel-3-xl, {XEON}"):
        find_device("lg-v60")


def test_a_machine_that_was_not_measured_says_so():
    assert "nvidia-cuda" not in device_names()
    with pytest.raises(ConfigError, match="not measured: no machine"):
        find_device(str(MACHINES / "nvidia-cuda.toml"))
