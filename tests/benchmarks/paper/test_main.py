"""The command."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from benchmarks.paper import __main__ as command


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Runs it for a moment, with its files in a folder and without the clips of Table 4."""
    found = {"mean": 0.5, "std": 0.1}
    table = {"simulated": {"face": {"max-total": {"held": found}}}}
    monkeypatch.setattr(command, "table_4", lambda *_: table)

    def call(*arguments):
        where = ["--out", str(tmp_path / "paper.md"), "--results", str(tmp_path / "results")]
        monkeypatch.setattr(sys, "argv", ["paper", *where, *arguments])
        command.main()
        return (tmp_path / "paper.md").read_text()

    log = logging.getLogger("heimdall")
    level = log.level
    yield call
    log.setLevel(level)  # the command hears errors only


@pytest.mark.slow
def test_the_page_can_be_made_again_from_what_was_measured(run, tmp_path):
    text = run("--simulated-seconds", "1")
    assert "0.50 ± 0.10" in text
    assert (tmp_path / "images" / "sweep.svg").exists()
    live = {"machine": {"processor": "Chip", "cores": 2, "memory_mb": 1}, "seconds": 1.0}
    live |= {"device": None, "networks": {}, "runs": {"4 drawn": {"fps": {"mean": 7.125}}}}
    (tmp_path / "results" / "live.json").write_text(json.dumps(live))
    assert "7.12" in run("--page-only")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--page-only"], "run without --page-only"),
        (["--page-only", "--live"], "exclude each other"),
        (["--seconds", "0"], "--seconds must be above 0"),
        (["--out", "/dev/null/paper.md"], "--out /dev/null/paper.md: cannot write there"),
        (["--out", "paper.html"], "must end in .md"),
    ],
)
def test_bad_input_is_refused_with_one_line(run, capsys, arguments, message):
    with pytest.raises(SystemExit) as ended:
        run(*arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
