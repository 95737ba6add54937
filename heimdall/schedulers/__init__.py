"""Which job runs next: one policy a file, chosen by name.

``base`` has the contract (View, Choice, Scheduler), ``utility`` Eqs. 2-4, ``deadline`` the check
that comes before utility, ``greedy`` what both policies of the paper share. A new policy is a
Scheduler (or Greedy) subclass listed in ``SCHEDULERS``.
"""

from heimdall.errors import ConfigError, unknown
from heimdall.schedulers.base import Assignment, Choice, JobView, Scheduler, View
from heimdall.schedulers.max_min import MaxMin
from heimdall.schedulers.max_total import MaxTotal
from heimdall.schedulers.utility import utility_for

SCHEDULERS: dict[str, type[Scheduler]] = {policy.name: policy for policy in (MaxMin, MaxTotal)}

__all__ = [
    "SCHEDULERS",
    "Assignment",
    "Choice",
    "JobView",
    "Scheduler",
    "View",
    "create",
    "utility_for",
]


def create(name: str) -> Scheduler:
    """A fresh scheduler by its registered name; ConfigError lists the names when unknown."""
    if name not in SCHEDULERS:
        raise ConfigError(unknown("scheduler", name, SCHEDULERS))
    return SCHEDULERS[name]()
