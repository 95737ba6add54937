"""Utility of a DNN (Heimdall, Eqs. 2-4) and the presets of its parameters. Times are in ms."""

from __future__ import annotations

from collections.abc import Mapping

from heimdall.errors import ConfigError, unknown
from heimdall.vocabulary.enums import Content, Priority
from heimdall.vocabulary.plans import Utility

_PAPER = Content.PAPER  # a global: a member of an enum is looked up by a call in Python 3.11
BETAS: Mapping[str, float] = {Priority.LOW: 0.5, Priority.NORMAL: 1.0, Priority.HIGH: 8.0}

# Eq. 4 is a sum over the 1920 x 1080 pixels of a frame. Under "aging", alpha = 0.01 means that a
# mean change of this many grey levels doubles beta: about what a hand-held camera gives in 100 ms.
_LEVELS_THAT_DOUBLE = 8
AGING_UNIT = 0.01 * 1920 * 1080 * _LEVELS_THAT_DOUBLE


def utility_for(priority: str, constraint_ms: float, **overrides: float) -> Utility:
    """The preset of a priority: beta 0.5 / 1 / 8 for low / normal / high, gamma 1, and
    ``l0 = (beta * constraint_ms) ** 2``, so that utility is zero when the constraint is reached.

    ``overrides`` replace beta, gamma, l0 or alpha; l0 follows the overridden beta and gamma
    unless it is given. Raises ConfigError for an unknown priority or parameter.
    """
    if priority not in BETAS:
        raise ConfigError(unknown("priority", priority, BETAS))
    valid = ("beta", "gamma", "l0", "alpha")
    for name in overrides:
        if name not in valid:
            raise ConfigError(unknown("utility parameter", name, valid))
    beta = overrides.get("beta", BETAS[priority])
    gamma = overrides.get("gamma", 1.0)
    l0 = overrides.get("l0", (beta * constraint_ms**gamma) ** 2)
    return Utility(beta=beta, gamma=gamma, l0=l0, alpha=overrides.get("alpha", 0.01))


def latency_loss(utility: Utility, latency_ms: float) -> float:
    """What Eq. 3 subtracts from l0 after ``latency_ms``."""
    return (utility.beta * latency_ms**utility.gamma) ** 2


def content_terms(content: str, utility: Utility, difference: float) -> tuple[float, float]:
    """(beta, bonus) of a job whose frame differs by ``difference`` (C of Eq. 4).

    "paper": Eq. 2 as written, the bonus is alpha * C. It then has no influence under max-total,
    where constants cancel, and under max-min it makes a changing scene *wait*. "aging" scales
    beta instead, so that stale results on a moving scene lose utility faster.
    """
    weighted = utility.alpha * difference
    if content == _PAPER:
        return utility.beta, weighted
    return utility.beta * (1.0 + weighted / AGING_UNIT), 0.0
