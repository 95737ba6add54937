"""Which job runs next: one policy a file, chosen by name.

``base`` has the contract (View, Choice, Scheduler), ``utility`` Eqs. 2-4, ``deadline`` the check
that comes before utility, ``greedy`` what both policies of the paper share. A new policy is a
Scheduler (or Greedy) subclass: passed where a name is accepted, named by its file
(``path/to/file.py[:Class]``), registered in ``SCHEDULERS``, or offered by a package under the entry
points ``heimdall.schedulers`` (docs/do/policy.md).
"""

import functools
import inspect
import os

from heimdall.errors import ConfigError
from heimdall.schedulers.base import Assignment, Choice, JobView, Scheduler, View
from heimdall.schedulers.fcfs import Fcfs
from heimdall.schedulers.greedy import Greedy
from heimdall.schedulers.max_min import MaxMin
from heimdall.schedulers.max_total import MaxTotal
from heimdall.schedulers.utility import utility_for
from heimdall.system.classes import class_of, file_of, is_file
from heimdall.system.registry import Registry


def _is_policy(value: object) -> bool:
    return inspect.isclass(value) and issubclass(value, Scheduler)


def _accept(name: str, value: object) -> str | None:
    if not _is_policy(value):
        return f"must be a class derived from heimdall.schedulers.Scheduler, not {value!r}"
    own = getattr(value, "name", None)
    if own != name:  # it would be recorded under a name that is not found
        return f"must have that name itself: {value!r} is called {own!r}"
    return None


SCHEDULERS: Registry[type[Scheduler]] = Registry(
    "scheduler",
    "heimdall.schedulers",
    {policy.name: policy for policy in (MaxMin, MaxTotal, Fcfs)},
    _accept,
)

__all__ = [
    "SCHEDULERS",
    "Assignment",
    "Choice",
    "Greedy",
    "JobView",
    "Scheduler",
    "View",
    "create",
    "kind_of",
    "name_of",
    "utility_for",
]


def create(policy: str | type[Scheduler] | Scheduler) -> Scheduler:
    """A scheduler: a fresh one of a name, a file or a class, or the very one that is given.

    Raises ConfigError for an unknown name, listing those there are, and for what is no scheduler.
    """
    found = kind_of(policy)
    if isinstance(policy, Scheduler):
        return policy
    try:
        return found()
    except TypeError as error:  # an abstract method is missing, or arguments are
        raise ConfigError(f"scheduler {found.__name__} cannot be made: {error}") from error


def kind_of(policy: str | type[Scheduler] | Scheduler) -> type[Scheduler]:
    """The class of a scheduler. Raises what ``create`` raises for one that there is not."""
    if isinstance(policy, str):
        if is_file(policy):
            return _in_file(policy, os.stat(file_of(policy, "scheduler")).st_mtime_ns)
        return SCHEDULERS[policy] if policy in SCHEDULERS else SCHEDULERS.find(policy)
    name_of(policy)
    return type(policy) if isinstance(policy, Scheduler) else policy


def name_of(policy: str | type[Scheduler] | Scheduler) -> str:
    """What a scheduler is called in reports and traces. Raises ConfigError for what is none, and
    for one that goes by another one's name."""
    if isinstance(policy, str):
        if not is_file(policy):
            return policy
        policy = kind_of(policy)
    if not (isinstance(policy, Scheduler) or _is_policy(policy)):
        raise ConfigError(f"scheduler must be a name, a Scheduler or its class, not {policy!r}")
    name = getattr(policy, "name", None)
    if not isinstance(name, str) or not name:
        raise ConfigError(f"scheduler {policy!r} needs a name: a text, as a class attribute")
    kind = policy if isinstance(policy, type) else type(policy)
    if name in SCHEDULERS and SCHEDULERS[name] is not kind:
        raise ConfigError(f"scheduler {kind.__name__} is called {name!r}, as another; rename it")
    return name


@functools.lru_cache(maxsize=32)
def _in_file(target: str, written_ns: int) -> type[Scheduler]:
    """Read once, and again when the file has changed."""
    return class_of(target, Scheduler, "scheduler")  # type: ignore[type-abstract]
