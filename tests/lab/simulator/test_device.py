from __future__ import annotations

import statistics
from itertools import pairwise

import pytest

from heimdall.errors import ConfigError
from heimdall.lab.bench.scenario import load_scenario
from heimdall.lab.devices import FOLDER
from heimdall.lab.simulator.device import load_device, op_latencies_ns, phone_names
from heimdall.lab.simulator.devices import find_device

TABLE_2 = {  # CPU ops, GPU ops, ms on the LG V50
    "YOLO-v2": (0, 33, 95),
    "RetinaFace": (6, 129, 230),
    "ArcFace": (0, 106, 149),
    "DeepLab-v3": (0, 101, 207),
    "StyleTransfer": (14, 106, 60),
    "CPM": (0, 187, 14),
    "PoseNet": (0, 74, 256),
    "EAST": (8, 117, 214),
}


def ops(device, name):
    return op_latencies_ns(name, device.networks[name], device.op_spread)


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("gpu_ops = 33", f"gpu_ops = {1 << 62}", "networks.YOLO-v2.gpu_ops: must be at most"),
        ("gpu_ops = 33", "gpu_ops = 33\ncpu_ops = 9999999", "YOLO-v2.cpu_ops: must be at most"),
        ("op_spread = 0.5", "op_spread = 1000", "op_spread: must be at most 50, not 1000"),
        ("gpu_ops = 33\nms = 95", "gpu_ops = 33\nms = inf", "YOLO-v2.ms: must be a finite number"),
    ],
)
def test_what_no_network_has_is_refused(tmp_path, was, now, said):
    text = (FOLDER / "lg-v50.toml").read_text()
    assert was in text
    (tmp_path / "odd.toml").write_text(text.replace(was, now, 1))
    with pytest.raises(ConfigError, match=said):
        find_device(str(tmp_path / "odd.toml"))


def test_the_phones_of_the_paper_are_there():
    assert {"lg-v50", "pixel-3-xl"} <= set(phone_names())


@pytest.mark.parametrize("name", TABLE_2)
def test_a_network_has_the_ops_and_the_total_of_table_2(name):
    op_ns, fallback = ops(load_device("lg-v50"), name)
    cpu_ops, gpu_ops, ms = TABLE_2[name]
    assert (sum(fallback), len(fallback) - sum(fallback)) == (cpu_ops, gpu_ops)
    assert sum(op_ns) / 1e6 == pytest.approx(ms, abs=0.01)


def test_as_many_ops_are_short_as_in_figure_7():
    phone = load_device("pixel-3-xl")
    above_33_ms = [name for name in phone.networks if phone.networks[name].ms > 33]
    assert len(above_33_ms) == 7
    shares = [
        sum(ns <= 5e6 for ns in op_ns) / len(op_ns)
        for op_ns, _ in (ops(phone, name) for name in above_33_ms)
    ]
    assert statistics.fmean(shares) == pytest.approx(0.898, abs=0.005)


def test_fallback_ops_are_apart_from_each_other():
    _, fallback = ops(load_device("lg-v50"), "StyleTransfer")
    assert not any(a and b for a, b in pairwise(fallback))
    assert not fallback[0]
    assert not fallback[-1]


def test_fallback_ops_can_be_scattered_without_another_total():
    device = load_device("lg-v50")
    network = device.networks["StyleTransfer"]
    even, one, other = (
        op_latencies_ns("StyleTransfer", network, device.op_spread, scatter)
        for scatter in (0, 1, 2)
    )
    assert len({fallback for _, fallback in (even, one, other)}) == 3
    assert sorted(one[0]) == sorted(even[0])
    assert sum(one[1]) == sum(even[1]) == 14
    again = device.model_copy(update={"scatter": 1}).stage("StyleTransfer", 30_000_000)
    assert again.fallback == one[1]


def test_running_op_by_op_costs_what_figure_12_shows():
    phone = load_device("lg-v50")
    more = [
        phone.gpu.chunk_cost_ms * network.ops / network.ms
        for network in phone.networks.values()
        if network.ms > 33
    ]
    assert min(more) == pytest.approx(0.13, abs=0.02)
    assert max(more) == pytest.approx(0.70, abs=0.11)


def test_rendering_grows_with_the_picture():
    phone = load_device("lg-v50")
    assert phone.machine((1920, 1080)).render_ns == 2_700_000
    assert phone.machine((960, 540)).render_ns == 675_000
    assert phone.machine((960, 540), render_ms=4).render_ns == 4_000_000


def test_an_unknown_device_lists_the_valid_ones():
    with pytest.raises(ConfigError, match="lg-v50, pixel-3-xl"):
        load_device("lg-v60")


def test_a_reference_that_a_phone_lacks_is_named(tmp_path):
    scenario = tmp_path / "odd.toml"
    scenario.write_text('fps = 30\nsize = [1920, 1080]\n[dnns.a]\nreference = "YOLO-v9"\n')
    phone = load_device("lg-v50")
    with pytest.raises(ConfigError, match=r"'YOLO-v9'.*YOLO-v2"):
        phone.dnns(load_scenario(str(scenario)), phone.machine((1920, 1080)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title = 3", "title"),
        ("title = ", "not valid TOML"),
        ('title = "x"\n[gpu]\nname = "g"\nrender_ms = -1', "gpu.render_ms"),
    ],
)
def test_a_damaged_profile_says_where(tmp_path, text, message):
    path = tmp_path / "phone.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_device(str(path))
