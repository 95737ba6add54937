"""Results that are kept, and when they are made again."""

from __future__ import annotations

import pytest

from benchmarks.paper import simulated
from benchmarks.paper.kept import Kept, Task, fingerprint, perform
from heimdall.errors import ConfigError
from heimdall.lab.bench.apart import FailedSystemError


def twice(number):
    return {"twice": 2 * number}


def fail(number):
    raise FailedSystemError(f"no {number}")


def interrupted(number):
    raise KeyboardInterrupt


def quiet(what, done, total):
    """No progress."""


def task(number, call=twice):
    return Task(call, (number,), {"number": number})


def test_what_has_run_is_not_run_again(tmp_path):
    path = tmp_path / "results.jsonl"
    perform([task(1), task(2)], Kept(path, "v1"), 0, "", quiet)
    again = Kept(path, "v1")
    perform([task(1, fail), task(2, fail)], again, 0, "", quiet)
    assert again.get(task(2)) == {"twice": 4}
    assert again.failure(task(2)) is None


def test_what_is_asked_for_twice_runs_once(tmp_path):
    seen: list[int] = []
    same = [Task(seen.append, (number,), {"same": True}) for number in range(2)]
    perform(same, Kept(tmp_path / "results.jsonl", "v1"), 0, "", quiet)
    assert len(seen) == 1


def test_an_interrupted_command_keeps_what_had_finished(tmp_path):
    path = tmp_path / "results.jsonl"
    with pytest.raises(KeyboardInterrupt):
        perform([task(1), task(2, interrupted), task(3)], Kept(path, "v1"), 0, "", quiet)
    found = Kept(path, "v1")
    assert found.get(task(1)) == {"twice": 2}
    assert found.get(task(3)) is None


def test_other_sources_make_it_run_again(tmp_path):
    path = tmp_path / "results.jsonl"
    Kept(path, "v1").put(task(1), {"twice": 0})
    newer = Kept(path, "v2")
    assert newer.get(task(1)) is None
    assert newer.get(task(1), any_source=True) == {"twice": 0}
    assert newer.others([task(1), task(2)]) == 1
    perform([task(1)], newer, 0, "", quiet)
    newer.tidy()
    assert newer.others([task(1)]) == 0
    assert len(path.read_text().splitlines()) == 1


def test_one_that_fails_is_tried_again_and_says_why_until_then(tmp_path):
    path = tmp_path / "results.jsonl"
    kept = Kept(path, "v1")
    perform([task(1, fail), task(2)], kept, 0, "", quiet)
    assert kept.get(task(2)) == {"twice": 4}
    assert Kept(path, "v1").failure(task(1)) == "no 1"
    perform([task(1)], kept, 0, "", quiet)
    assert kept.get(task(1)) == {"twice": 2}
    assert Kept(path, "v1").failure(task(1)) is None


def test_a_line_that_was_cut_off_does_not_count(tmp_path):
    path = tmp_path / "results.jsonl"
    kept = Kept(path, "v1")
    kept.put(task(1), {"twice": 2})
    kept.put(task(2), {"twice": 4})
    path.write_text(path.read_text()[:-10])
    assert Kept(path, "v1").get(task(1)) == {"twice": 2}
    assert Kept(path, "v1").get(task(2)) is None


def test_results_go_on_behind_a_line_that_was_cut_off(tmp_path):
    path = tmp_path / "results.jsonl"
    Kept(path, "v1").put(task(1), {"twice": 2})
    path.write_text(path.read_text()[:-10])
    Kept(path, "v1").put(task(2), {"twice": 4})
    assert Kept(path, "v1").get(task(2)) == {"twice": 4}


def test_processes_give_what_one_gives(tmp_path):
    kept = Kept(tmp_path / "results.jsonl", "v1")
    perform([task(number) for number in range(5)], kept, 2, "", quiet)
    assert [kept.get(task(number))["twice"] for number in range(5)] == [0, 2, 4, 6, 8]


def test_a_file_that_is_no_text_is_an_error(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"results\.jsonl"):
        Kept(path, "v1")


def test_a_fingerprint_is_of_what_files_hold():
    assert fingerprint("apps/*.py") == fingerprint("apps/*.py")
    assert fingerprint("apps/*.py") != fingerprint("heimdall/*.py")


def test_a_fingerprint_of_sources_that_have_moved_is_refused():
    with pytest.raises(ConfigError, match=r"no source matches 'heimdall/simulator/\*\*/\*\.py'"):
        fingerprint("heimdall/*.py", "heimdall/simulator/**/*.py")


def test_results_of_the_simulator_count_its_sources(monkeypatch):
    asked = []
    monkeypatch.setattr(simulated, "fingerprint", lambda *patterns: asked.extend(patterns))
    simulated.source()
    assert "heimdall/**/*.py" in asked
