"""A device is tried in a child: what it cannot do is left out, and no driver takes the app along.

The drivers are the one of this machine, with single steps that abort, hang, exit or lie.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import sys
import textwrap

import numpy as np
import pytest

from heimdall.engine.opencl import probe
from heimdall.engine.opencl.abilities import Abilities
from heimdall.engine.opencl.device import devices, label
from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.errors import DeviceError


@pytest.fixture(scope="module")
def device():
    found = devices()
    if not found:
        pytest.skip("no OpenCL here")
    return found[0]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path))
    return tmp_path


def with_step(**steps: str) -> list[str]:
    """The trial, with other steps: ``name="python code of trial"``. Those that compile are short of
    what a test does not ask about."""
    code = "import os, time\nfrom heimdall.engine.opencl import trial\n"
    quick = {"binaries": "return True", "network": "return True", "half": "return False"}
    for name, body in {**quick, **steps}.items():
        code += f"def {name}(trial):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n"
        code += f"trial.STEPS[{name!r}] = {name}\n"
    return [sys.executable, "-c", code + "trial.main()"]


def test_the_device_here_can_what_kernels_need(device, cache):
    found = probe.abilities_of(device)
    assert not found.refused
    assert found.ways
    (file,) = (cache / "devices").iterdir()
    assert label(device) in file.read_text()


WAYS = [
    ("os.abort()", "SIGABRT"),
    ("os._exit(1)", "status 1"),
    ("time.sleep(600)", "hangs"),
    ("raise RuntimeError('wrong numbers')", "wrong numbers"),
]


@pytest.mark.parametrize(("body", "how"), WAYS)
def test_what_is_optional_is_done_without(device, body, how):
    found = probe.look(device, with_step(prefetch=body), limit_s=15)
    assert not found.refused
    assert not found.prefetch
    assert how in dict(found.lacks)["prefetch"]
    assert found.binaries  # what comes after is tried all the same


@pytest.mark.parametrize(("body", "how"), WAYS)
def test_a_device_that_does_not_compute_is_refused_with_what_failed(device, body, how):
    found = probe.look(device, with_step(prefetch="return True", network=body), limit_s=15)
    assert found.refused.startswith("it does not compute a small network: ")
    assert how in found.refused


def test_a_driver_that_ends_the_process_in_one_way_of_copying_is_used_by_another(device):
    used = "if way != 'staged': os.abort()\nreturn True"
    command = with_step(prefetch="return True")
    command[-1] = command[-1].replace(
        "trial.main()",
        f"def there(trial, way):\n{textwrap.indent(used, '    ')}\n"
        "trial._there_and_back = there\ntrial.main()",
    )
    found = probe.look(device, command)
    assert found.ways == ("staged",)
    assert not found.refused


def test_a_driver_that_ends_every_child_is_refused(device):
    found = probe.look(device, [sys.executable, "-c", "import os; os.abort()"])
    assert found.refused.startswith("it cannot be tried: it ended the process")


def test_a_package_that_is_broken_is_no_fault_of_the_device_and_is_not_kept(
    device, cache, monkeypatch
):
    code = "import cv2; cv2.utils.no_such_thing"
    monkeypatch.setattr(probe.look, "__defaults__", ([sys.executable, "-c", code], 60.0))
    with pytest.raises(DeviceError, match=r"package .* is broken.*no_such_thing"):
        probe.abilities_of(device)
    assert not [*cache.glob("devices/*")]


def test_what_was_found_with_other_packages_has_expired(device, cache, monkeypatch):
    before = probe._path(device)
    monkeypatch.setattr(probe, "packages", lambda: "onnx 1.15.0")
    assert probe._path(device) != before


def test_a_network_with_wrong_numbers_is_noticed(device):
    """The trial's own comparison, on numbers that a driver got slightly wrong."""
    code = (
        "from heimdall.engine.opencl import trial\nhonest = trial._network\n"
        "def lies(*sizes):\n    graph, inputs, wanted = honest(*sizes)\n"
        "    return graph, inputs, wanted * 1.01\n"
        "trial._network = lies\nfor name in ('prefetch', 'binaries', 'half'):\n"
        "    trial.STEPS[name] = lambda trial: False\ntrial.main()"
    )
    found = probe.look(device, [sys.executable, "-c", code])
    assert "wrong numbers" in found.refused


def test_what_is_kept_is_not_tried_again(device, cache, monkeypatch):
    monkeypatch.setattr(
        probe, "look", lambda device, **how: Abilities(ways=("staged",), network_ns=5)
    )
    first = probe.abilities_of(device)
    monkeypatch.setattr(probe, "look", lambda device, **how: pytest.fail("tried again"))
    assert probe.abilities_of(device) == first


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"schema": 1, "abilities": {"half": 1}}'])
def test_a_damaged_file_is_found_out_anew(device, cache, monkeypatch, caplog, damage):
    found = Abilities(ways=("mapped",), lacks=(("prefetch", "it hangs"),))
    monkeypatch.setattr(probe, "look", lambda device, **how: found)
    probe.abilities_of(device)
    (file,) = (cache / "devices").iterdir()
    file.write_bytes(damage)
    with caplog.at_level(logging.WARNING):
        assert probe.abilities_of(device) == found
    assert "the device is tried again" in caplog.text
    monkeypatch.setattr(probe, "look", lambda device, **how: pytest.fail("tried again"))
    assert probe.abilities_of(device) == found


def test_another_version_or_driver_is_another_file(device, cache, monkeypatch):
    monkeypatch.setattr(probe, "look", lambda device, **how: Abilities(ways=("staged",)))
    probe.abilities_of(device)
    monkeypatch.setattr(probe, "driver", lambda device: "of next year")
    probe.abilities_of(device)
    monkeypatch.setattr(probe, "version", lambda: "next")
    probe.abilities_of(device)
    assert len(list((cache / "devices").iterdir())) == 3


def test_where_nothing_can_be_kept_the_device_is_used_all_the_same(
    device, cache, monkeypatch, caplog
):
    (cache / "devices").write_text("a file where the folder should be")
    monkeypatch.setattr(probe, "look", lambda device, **how: Abilities(ways=("staged",)))
    assert not probe.abilities_of(device).refused
    assert "cannot be saved" in caplog.text


def test_a_refused_device_is_tried_again_only_when_asked_to(device, cache, monkeypatch):
    answers = [Abilities(refused="it hangs"), Abilities(ways=("staged",))]
    monkeypatch.setattr(probe, "look", lambda device, **how: answers.pop(0))
    assert probe.abilities_of(device).refused
    assert probe.abilities_of(device).refused
    assert not probe.abilities_of(device, again=True).refused
    assert not probe.abilities_of(device, again=True).refused
    assert not answers


class Device:
    """Enough of one to be chosen."""

    def __init__(self, name: str, gpu: bool) -> None:
        self.name, self.gpu = name, gpu


@pytest.fixture
def choose(monkeypatch):
    """``choose({name: Abilities}, wanted)``: the name chosen; those of upper case are GPUs."""

    def choose(found, wanted=None):
        made = [Device(name, name.isupper()) for name in found]
        monkeypatch.setattr(probe, "devices", lambda: made)
        monkeypatch.setattr(probe, "is_gpu", lambda device: device.gpu)
        monkeypatch.setattr(probe, "label", lambda device: device.name)
        monkeypatch.setattr(probe, "abilities_of", lambda device, **how: found[device.name])
        monkeypatch.setattr(probe, "select", lambda wanted: made[list(found).index(wanted)])
        return probe.choose(wanted)[0].name

    return choose


def able(ns: int) -> Abilities:
    return Abilities(ways=("staged",), network_ns=ns)


BROKEN = Abilities(refused="it hangs")


def test_the_first_gpu_that_can_be_used_is_taken(choose, caplog):
    assert choose({"RADEON": able(9), "pocl": able(1)}) == "RADEON"
    assert choose({"RADEON": BROKEN, "GEFORCE": able(9), "pocl": able(1)}) == "GEFORCE"
    assert "RADEON cannot be used: it hangs" in caplog.text


def test_of_two_that_play_the_gpu_the_faster_is_taken_if_it_clearly_is(choose):
    assert choose({"RADEON": BROKEN, "pocl": able(100), "intel": able(80)}) == "intel"
    assert choose({"pocl": able(100), "intel": able(95)}) == "pocl"
    assert choose({"pocl": able(100), "intel": able(120)}) == "pocl"
    assert choose({"pocl": BROKEN, "intel": able(120)}) == "intel"


def test_where_none_can_be_used_each_says_why(choose):
    with pytest.raises(DeviceError, match="RADEON cannot be used: it hangs; pocl cannot"):
        choose({"RADEON": BROKEN, "pocl": BROKEN})


def test_a_device_asked_for_is_refused_rather_than_replaced(choose):
    assert choose({"pocl": able(100), "intel": able(120)}, "intel") == "intel"
    with pytest.raises(DeviceError, match="RADEON cannot be used: it hangs"):
        choose({"RADEON": BROKEN, "pocl": able(1)}, "RADEON")


@pytest.mark.parametrize(
    "less",
    [
        {"prefetch": False},
        {"clock": False},
        {"binaries": False},
        {"ways": ("staged",)},
        {"groups": False},
    ],
    ids=lambda less: next(iter(less)),
)
def test_a_device_that_lacks_something_gives_the_same_numbers(device, engine, shared, build, less):
    from onnx import helper

    random = np.random.default_rng(1)
    weights = random.uniform(-1, 1, (32, 32, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["c"], ["y"]),
    ]
    graph = build(nodes, {"x": [1, 32, 8, 8]}, {"w": weights})
    lesser = dataclasses.replace(engine.abilities, **less)
    network = OpenCLEngine(keep_kernels=False, abilities=lesser).load(graph)
    inputs = {"x": random.uniform(-1, 1, (1, 32, 8, 8)).astype(np.float32)}
    state = network.new_state()
    found = shared.run(network, state, inputs)
    assert shared.relative_error(found, shared.reference(graph, inputs)) <= 1e-4
    times = network.op_times(state)
    assert (times is None) == ("clock" in less)


def test_devices_are_compared_when_there_are_several(device, cache):
    assert probe.abilities_of(device).network_ns == 0  # not asked for
    assert probe.abilities_of(device, compare=True).network_ns > 0
    assert probe.abilities_of(device).network_ns > 0


def test_a_device_that_disappears_before_it_is_tried_is_named(device):
    code = (
        "import os; os.environ['OCL_ICD_VENDORS'] = '/nowhere'\n"
        "from heimdall.engine.opencl import trial; trial.main()"
    )
    found = probe.look(device, [sys.executable, "-c", code])
    assert "has disappeared" in found.refused


def test_a_device_that_is_gone_in_the_next_run_is_no_obstacle(device, cache, run_python, tmp_path):
    """What was kept of it is not believed; onnxruntime plays the GPU."""
    code = f"""
        import json
        from heimdall.errors import DeviceError
        from heimdall.runtime.execution.processors import open_processors
        with open_processors() as there:
            names = [there.gpu.name]
        if names == ["onnxruntime"]:
            try:
                with open_processors({label(device)!r}):
                    pass
            except DeviceError as error:
                names.append(str(error))
        print(json.dumps(names))
    """
    here = {**os.environ, "HEIMDALL_REALTIME": "0"}
    assert run_python(code, env=here) == ["opencl"]
    gone = run_python(code, env={**here, "OCL_ICD_VENDORS": str(tmp_path / "none")})
    assert gone[0] == "onnxruntime"
    assert "no OpenCL platform found" in gone[1]


@pytest.fixture
def soon(monkeypatch, choose):
    """``soon({name: Abilities, or None where nothing is known}, wanted)``: which device is opened,
    and whether all is known of it."""

    def choose_soon(found, wanted=None):
        choose({name: known or able(100) for name, known in found.items()})
        monkeypatch.setattr(probe, "_path", lambda device: device.name)
        monkeypatch.setattr(probe.kept, "read", found.__getitem__)
        first = Abilities(ways=("mapped",))
        monkeypatch.setattr(probe, "look", lambda device, steps: first)
        device, abilities, complete = probe.choose_soon(wanted)
        assert complete or abilities == first
        return device.name, complete

    return choose_soon


def test_a_device_of_which_nothing_is_known_is_opened_after_a_first_look(soon):
    assert soon({"RADEON": None, "pocl": None}) == ("RADEON", False)
    assert soon({"RADEON": BROKEN, "pocl": None}) == ("pocl", False)
    assert soon({"pocl": None, "intel": able(9)}, "pocl") == ("pocl", False)


def test_what_is_known_is_all(soon):
    assert soon({"RADEON": able(1), "pocl": None}) == ("RADEON", True)
    assert soon({"pocl": able(100)}) == ("pocl", True)


def test_devices_whose_speeds_must_be_compared_are_tried_first(soon):
    assert soon({"pocl": None, "intel": None})[1]


def test_a_first_look_needs_no_compiler(device):
    found = probe.look(device, steps=probe.FIRST)
    assert found.ways
    assert not found.refused
    assert (found.prefetch, found.binaries, found.walk) == (False, False, False)
