"""What may be asked of a run: errors speak of arguments here, of flags on the command line."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from click.testing import CliRunner

from heimdall import ArgumentError, ConfigError, Greedy, RunOptions
from heimdall.app.options import RunArguments
from heimdall.cli import console
from heimdall.schedulers.max_min import MaxMin


@pytest.mark.parametrize(
    ("argument", "value", "said", "typed"),
    [
        ("fps", 0, "fps=0: must be above 0 and at most 1000", "--fps 0: must be above 0"),
        ("fps", float("nan"), "fps=nan: must be above 0", "--fps nan: must"),
        ("fps", "30", "fps=30: must be a finite number above 0", "--fps 30: must"),
        ("seconds", float("inf"), "seconds=inf: must be a finite number", "--seconds inf: must"),
        ("frames", 0, "frames=0: must be at least 1", "--frames 0: must be at least 1"),
        ("gpu_cores", 0, "gpu_cores=0: must be at least 1", "--gpu-cores 0: must be at least 1"),
        ("size", (0, 5), "size=(0, 5): sides must be from 1 to", "--size 0x5: sides must"),
        ("size", 5, "size=5: must be (width, height) in pixels", "--size 5: must be"),
        ("record", "x.avi", "record=x.avi: the name must end in .mp4", "--record x.avi: the name"),
    ],
)
def test_a_value_out_of_range_is_named_as_an_argument_and_as_a_flag(argument, value, said, typed):
    with pytest.raises(ArgumentError) as caught:
        RunOptions(**{argument: value})
    assert str(caught.value).startswith(said)
    assert console.words(caught.value).startswith(typed)
    assert isinstance(caught.value, ConfigError)


def test_the_command_line_says_the_flag():
    from heimdall.cli import main

    for words, said in (
        (["run", "shopping", "--fps", "0"], "--fps 0: must be above 0"),
        (["simulate", "shopping-phone", "--render-ms", "-1"], "--render-ms -1: must be at least 0"),
    ):
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 2
        assert f"error: {said}" in result.output


def test_keyword_arguments_are_the_options():
    options = [field.name for field in dataclasses.fields(RunOptions)]
    assert list(RunArguments.__annotations__) == options


def test_a_path_may_be_a_text(tmp_path):
    given = str(tmp_path / "a.mp4")
    assert RunOptions(record=given).record == tmp_path / "a.mp4"  # type: ignore[arg-type]
    assert isinstance(RunOptions(trace=Path("t.json")).trace, Path)


class Newest(Greedy):
    name = "newest"
    reason = "newest"

    def prefer(self, view, now_ns, jobs):
        return jobs[-1]


def test_a_scheduler_may_be_an_object_or_a_class():
    assert RunOptions(scheduler=Newest).scheduler is Newest
    own = MaxMin()
    assert RunOptions(scheduler=own).scheduler is own
    with pytest.raises(ConfigError, match="must be a name, a Scheduler or its class, not 5"):
        RunOptions(scheduler=5)  # type: ignore[arg-type]


def test_a_scheduler_with_another_ones_name_is_refused():
    class Thief(MaxMin):
        pass

    with pytest.raises(ConfigError, match="Thief is called 'max-min', as another; rename it"):
        RunOptions(scheduler=Thief)
