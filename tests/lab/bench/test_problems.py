"""A mistake in a file is told by its place, and in words of whoever wrote it."""

from __future__ import annotations

import pytest

from heimdall.errors import ConfigError
from heimdall.lab.bench.scenario import load_scenario

HEAD = 'app = "shopping"\n'
REQUESTS = "seconds = 3\n[models.a]\nevent = {process = 'poisson', rate_hz = 3}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + "[dnns.hand]\nrate = 3", "dnns.hand: unknown key 'rate'; did you mean rate_hz?"),
        (HEAD + "sise = [640, 480]", "unknown key 'sise'; did you mean size?"),
        (
            HEAD + "[dnns.style]\nevent = {process = 'poisson', rate_hz = 1, jiter_ms = 2}",
            "dnns.style.event: unknown key 'jiter_ms'; did you mean jitter_ms?",
        ),
        (
            HEAD + "[throttle]\nafter_s = 3",
            "throttle.factor: is missing",
        ),
        (
            HEAD + "[throttle]\nafter_s = 3\nfactor = 2\nqq = 3",
            "throttle: unknown key 'qq'; choose one of: after_s, factor",
        ),
        (HEAD + "throttle = 3", "throttle: must be a table, not 3"),
        (HEAD + "fps = 'fast'", "fps: must be a number, not 'fast'"),
        (HEAD + "seed = 1.5", "seed: must be a whole number, not 1.5"),
        (HEAD + "title = 3", "title: must be a text in quotes, not 3"),
        (HEAD + "size = [640]", "size.1: is missing"),
        (HEAD + "size = [640, 'x']", "size.1: must be a whole number, not 'x'"),
        (HEAD + "dnns = 3", "dnns: must be a table, not 3"),
        (HEAD + "[dnns.hand]\nrate_hz = -1", "dnns.hand.rate_hz: must be above 0, not -1"),
        (HEAD + "[dnns.hand]\non_event = 'no way'", "on_event: must be true or false, not 'no"),
        (REQUESTS + "number = 'x'", "models.a.number: must be a whole number or a list [...], no"),
        (REQUESTS + "number = [1, 'x']", "models.a.number"),
        (REQUESTS + "slo = 3", "models.a: unknown key 'slo'; did you mean slo_ms?"),
        (REQUESTS + "slo_ms = 1\nslo_multiplier = 2", "models.a: has slo_ms and slo_multiplier"),
        (
            "drain = 'x'\n" + REQUESTS,
            "drain: must be true or false, not 'x'",
        ),
        (
            "away = [{processor = 'gpu', from_s = 1, for_sec = 3}]\n" + REQUESTS,
            "away.0: unknown key 'for_sec'; did you mean for_s?",
        ),
        (
            "away = [{processor = 'gpu', from_s = 1, for_s = 3, until = 3}]\n" + REQUESTS,
            "away.0: unknown key 'until'; choose one of: for_s, from_s, processor",
        ),
        ("lone = 'p50'\n" + REQUESTS, "lone: must be 'mean' or 'p99', not 'p50'"),
    ],
)
def test_what_is_wrong_is_said_in_plain_words(tmp_path, text, said):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as raised:
        load_scenario(str(path))
    assert str(raised.value).startswith(f"scenario {path}: ")
    assert said in str(raised.value)
    for word in ("Input", "Extra", "Field", "Value error", "valid"):  # pydantic's
        assert word not in str(raised.value)
