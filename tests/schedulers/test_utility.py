from __future__ import annotations

import pytest

from heimdall.errors import ConfigError
from heimdall.schedulers.utility import content_terms, latency_loss, utility_for
from heimdall.vocabulary.plans import Utility

PIXELS = 1920 * 1080


def test_presets_follow_the_priority():
    assert utility_for("low", 1000) == Utility(beta=0.5, gamma=1.0, l0=250_000.0, alpha=0.01)
    assert utility_for("normal", 100) == Utility(beta=1.0, gamma=1.0, l0=10_000.0, alpha=0.01)
    assert utility_for("high", 100) == Utility(beta=8.0, gamma=1.0, l0=640_000.0, alpha=0.01)


def test_each_parameter_can_be_overridden():
    made = utility_for("high", 100, beta=2, alpha=0.5)
    assert (made.beta, made.alpha, made.l0) == (2, 0.5, 40_000.0)
    assert utility_for("high", 100, l0=7).l0 == 7


def test_utility_is_zero_when_the_constraint_is_reached():
    for gamma in (0.5, 1.0, 1.5):
        made = utility_for("high", 250, gamma=gamma)
        assert latency_loss(made, 250) == pytest.approx(made.l0)


def test_the_loss_is_equation_3():
    assert latency_loss(Utility(beta=2, gamma=1), 10) == 400
    assert latency_loss(Utility(beta=2, gamma=2), 10) == 40_000


def test_utility_of_a_job_is_equations_2_and_3(moment):
    job = moment.job("a", age_ms=30, constraint_ms=100, difference=5_000)
    assert job.utility_at(moment.now_ns) == pytest.approx(100**2 - 30**2 + 0.01 * 5_000)


def test_a_mean_change_of_eight_levels_doubles_beta_when_aging():
    assert content_terms("aging", Utility(), 8 * PIXELS) == (pytest.approx(2.0), 0.0)
    assert content_terms("paper", Utility(), 8 * PIXELS) == (1.0, pytest.approx(0.08 * PIXELS))


def test_unknown_names_list_the_valid_ones():
    with pytest.raises(ConfigError, match="unknown priority 'urgent'; choose one of: high, low"):
        utility_for("urgent", 100)
    with pytest.raises(ConfigError, match="unknown utility parameter 'delta'"):
        utility_for("low", 100, delta=1)
