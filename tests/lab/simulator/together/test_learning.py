"""Learning for TOP: small, but real."""

from __future__ import annotations

import json
from itertools import combinations
from statistics import fmean
from typing import Any

import numpy as np
import onnxruntime
import pytest

from heimdall.errors import ConfigError
from heimdall.lab.bench.scenario import load_scenario
from heimdall.lab.cli.schemas import json_schema
from heimdall.lab.simulator.together.actors import CHOICE, OnnxActor, OnnxStager
from heimdall.lab.simulator.together.concurrent_stages import Combined, best_cut, cut, most_saving
from heimdall.lab.simulator.together.device import load_together
from heimdall.lab.simulator.together.features import graph_of
from heimdall.lab.simulator.together.networks import network
from heimdall.lab.simulator.together.policies import block_of
from tests.docs.json_schemas import wrong

torch = pytest.importorskip("torch")

from heimdall.lab.policies.top import Task  # noqa: E402
from heimdall.lab.simulator.learning.agents import Agents, Critic, ZScores  # noqa: E402
from heimdall.lab.simulator.learning.gpg import GpgTraining  # noqa: E402
from heimdall.lab.simulator.learning.maddpg import centres  # noqa: E402
from heimdall.lab.simulator.learning.training import train_top  # noqa: E402


def blocks(device, name="SqueezeNet"):
    return [block_of(device, name, index) for index in range(len(network(name).blocks))]


def test_the_file_of_the_actors_equals_pytorch(tmp_path):
    torch.manual_seed(1)
    task = Task(("a", "b"), (3, 4), 2, samples=3)
    agents = Agents(task)
    session = onnxruntime.InferenceSession(agents.onnx(task.state_size, {}))
    for seed in range(5):
        state = np.random.default_rng(seed).normal(size=(1, task.state_size)).astype(np.float32)
        (found,) = session.run(None, {"state": state})
        expected = agents.act(torch.from_numpy(state)).detach().numpy()
        np.testing.assert_allclose(found, expected, atol=1e-5)
    assert expected.shape == (1, 2 + 7)


def test_critics_see_which_blocks_are_together_and_not_by_which_number():
    torch.manual_seed(1)
    critic = Critic(Task(("a", "b"), (3, 2), 2, samples=3))
    states = torch.zeros(1, 3 * 7)

    def worth(*numbers):
        return critic(states, torch.tensor([numbers])).detach().numpy()

    here = worth(0.1, 0.1, 0.1, 0.1, 0.3, 0.5, 0.5)
    assert here.shape == (1, 2)
    np.testing.assert_allclose(worth(0.1, 0.1, 0.3, 0.3, 0.5, 0.7, 0.7), here, atol=1e-5)
    assert np.abs(worth(0.1, 0.1, 0.1, 0.3, 0.1, 0.5, 0.5) - here).max() > 1e-3
    assert np.abs(worth(0.1, 0.9, 0.1, 0.1, 0.3, 0.5, 0.5) - here).max() > 1e-3


def test_the_file_of_the_cutter_equals_pytorch():
    made = blocks(load_together("top-a100"))
    training = GpgTraining(made, 3, 0, 1)
    whole = Combined(made[1:4])
    graph = graph_of(whole)
    choices = graph.choices(whole.whole, whole.endings(whole.whole))
    session = onnxruntime.InferenceSession(training.learnt.onnx({}))
    given = dict(zip(CHOICE, (graph.features, graph.parents, *choices), strict=True))
    (found,) = session.run(None, given)
    expected = torch.softmax(training.learnt.weigh(graph, *choices), 0).detach().numpy()
    assert len(expected) > 100
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-5)


def test_where_running_together_does_not_pay_cutting_learns_not_to():
    nano = load_together("top-nano")
    made = [*blocks(nano, "SqueezeNet"), *blocks(nano, "Inception-V3")[:12]]
    training = GpgTraining(made, 2, 3, 200)  # of a seed that begins by running much together
    assert training.score() > 1.05
    for _ in training.train():
        pass
    assert training.score() == pytest.approx(1.0, abs=0.01)  # as one op after the other


def test_blocks_that_it_has_not_seen_are_cut_nearly_as_by_dynamic_programming():
    fires = [each for each in blocks(load_together("top-a100")) if len(each.ops) == 4]
    training = GpgTraining(fires[::2], 2, 0, 150)
    for _ in training.train():
        pass
    others = [Combined(pair) for pair in combinations(fires[1::2], 2)]
    took = [training.cut(each)[1] / best_cut(each)[1] for each in others]
    saving = [cut(each, most_saving)[1] / best_cut(each)[1] for each in others]
    assert fmean(took) <= 1.05 < fmean(saving)


def test_learning_to_cut_goes_on_as_if_it_had_not_been_ended():
    made = blocks(load_together("top-a100"))

    def after(steps, training):
        while training.done < steps:
            next(training.train())
        return training

    whole = after(8, GpgTraining(made, 3, 2, 8))
    kept = after(5, GpgTraining(made, 3, 2, 8)).state()
    other = GpgTraining(made, 3, 2, 8)
    other.resume(kept)
    assert after(8, other).learnt.onnx({}) == whole.learnt.onnx({})
    assert kept["lessons"]


@pytest.mark.parametrize("total", [5, 13, 30])
def test_the_numbers_of_a_plan_are_far_from_where_another_one_begins(total):
    for parts in range(1, total + 1):
        places = [place * total for place in centres(parts, total)]
        assert len({int(place) for place in places}) == parts
        assert all(place % 1 == pytest.approx(0.5) for place in places)
        assert 0 < places[0] <= places[-1] < total


def test_z_scores_are_of_all_values_so_far():
    scores, values = ZScores(1), [3.0, 5.0, 10.0]
    for value in values:
        scores.add(np.asarray([value]))
    assert scores(np.asarray([10.0]))[0] == pytest.approx((10 - 6) / np.std(values, ddof=1))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("trained")
    told = []
    result = train_top(
        load_scenario("top-resnet-50"), out, steps=40, stage_steps=4, seed=5,
        progress=lambda *each: told.append(each),
    )  # fmt: skip
    return out, result, told


def test_a_training_writes_actor_stages_curves_and_a_checkpoint(trained):
    out, result, told = trained
    assert {"top-resnet-50.onnx", "top-resnet-50.png", "top-resnet-50.pt",
            "stages-top-a100.onnx"} == {file.name for file in out.iterdir()}  # fmt: skip
    assert told[-1] == ("actors", 40, 40)
    actor = OnnxActor(out / "top-resnet-50.onnx")
    assert actor.hash == result["actor_sha256"]
    assert (actor.about.seed, actor.about.steps) == (5, 40)
    assert actor.about.networks == ("ResNet-50",)
    stager = OnnxStager(out / actor.about.stages)
    whole = Combined(blocks(load_together("top-a100"), "ResNet-50")[:2])
    stages, ns = stager.cut(whole)
    ops = network("ResNet-50").blocks[1][1]
    assert {op for stage in stages for _, group in stage for op in group} == set(range(ops))
    assert 0 < ns < whole.alone_ns
    assert wrong(json_schema("train-top"), json.loads(json.dumps(result))) == []


def test_the_same_seed_learns_the_same(trained, tmp_path):
    _, result, _ = trained
    again = train_top(load_scenario("top-resnet-50"), tmp_path, steps=40, stage_steps=4, seed=5)
    assert again["actor_sha256"] == result["actor_sha256"]


class EnoughError(Exception):
    pass


def test_a_training_that_was_ended_goes_on_as_if_it_had_not(trained, tmp_path):
    _, result, _ = trained

    def stop(what, done, total):
        if what == "actors" and done >= 30:
            raise EnoughError

    scenario = load_scenario("top-resnet-50")
    how: dict[str, Any] = {"steps": 40, "stage_steps": 4, "seed": 5}
    with pytest.raises(EnoughError):
        train_top(scenario, tmp_path, progress=stop, **how)
    kept = tmp_path / "top-resnet-50.pt"
    again = train_top(scenario, tmp_path, resume=kept, **how)
    assert again["actor_sha256"] == result["actor_sha256"]
    with pytest.raises(ConfigError, match="resume it with the same arguments"):
        train_top(scenario, tmp_path, resume=kept, **{**how, "seed": 6})


def test_a_checkpoint_that_is_none(tmp_path):
    (tmp_path / "no.pt").write_bytes(b"nothing")
    with pytest.raises(ConfigError, match=r"training .*no\.pt cannot be read"):
        train_top(load_scenario("top-resnet-50"), tmp_path, resume=tmp_path / "no.pt")


def test_a_device_with_nothing_to_learn(tmp_path):
    with pytest.raises(ConfigError, match="runs one operator at a time: there is nothing to learn"):
        train_top(load_scenario("top-resnet-50"), tmp_path, device="jetson-nano")
