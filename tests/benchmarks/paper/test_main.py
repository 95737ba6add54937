"""The command."""

from __future__ import annotations

import logging
import sys

import pytest

from benchmarks.paper import __main__ as command
from benchmarks.paper import accuracy
from benchmarks.paper.values import read_values
from heimdall.errors import ConfigError


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Runs it for a moment, with its files in a folder."""

    def call(*arguments):
        page = tmp_path / "page" / "paper.md"
        where = ["--out", str(page), "--results", str(tmp_path / "results")]
        monkeypatch.setattr(sys, "argv", ["paper", *where, *arguments])
        command.main()
        return page.read_text()

    log = logging.getLogger("heimdall")
    level = log.level
    yield call
    log.setLevel(level)  # the command hears errors only


@pytest.mark.slow
def test_the_page_can_be_made_again_from_what_was_measured(run, tmp_path, monkeypatch):
    monkeypatch.setattr(accuracy, "WATCHED", ())
    short = ("--simulated-seconds", "1", "--seeds", "1")
    text = run("--only", "Fig. 4", *short)
    assert "| 4 networks, fps" in text
    made = (tmp_path / "results" / "simulated.jsonl").read_text()
    assert (tmp_path / "images" / "paper-fig-4.png").exists()
    assert run("--page-only", *short) == text
    run("--only", "Fig. 4", *short)
    assert (tmp_path / "results" / "simulated.jsonl").read_text() == made


def test_parts_and_figures_can_be_chosen():
    paper = read_values()
    assert "live" not in command.chosen(None, False, paper).parts
    assert "live" in command.chosen(None, True, paper).parts
    assert command.chosen(["sweep"], False, paper).parts == ("sweep",)
    figure = command.chosen(["Fig. 14(b)"], True, paper)
    assert figure.parts == ("simulated", "live")
    assert "shopping max-total-static" in figure.runs
    assert "workspace max-total" not in figure.runs
    with pytest.raises(ConfigError, match=r"Fig\. 14\(b\)"):
        command.chosen(["Fig. 99"], False, paper)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--page-only"], "run without --page-only"),
        (["--page-only", "--live"], "goes with neither"),
        (["--only", "nothing"], "unknown part or figure"),
        (["--seconds", "0"], "--seconds must be above 0"),
        (["--seeds", "0"], "--seeds must be above 0"),
        (["--out", "/dev/null/paper.md"], "--out /dev/null/paper.md: cannot write there"),
        (["--out", "paper.html"], "must end in .md"),
    ],
)
def test_bad_input_is_refused_with_one_line(run, capsys, arguments, message):
    with pytest.raises(SystemExit) as ended:
        run(*arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
