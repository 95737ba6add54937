"""What a fault is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heimdall.lab.faults.moment import Moment
from heimdall.lab.faults.request import Request
from heimdall.lab.faults.trial import Trial
from heimdall.vocabulary.enums import Name


class Excuse(Name):
    """Why frames may stand still while a fault lasts."""

    NONE = ""
    SYSTEM = "the system took the cores"
    CALLBACK = "a callback held the main thread"


def nothing(moment: Moment) -> None:
    """Injects nothing."""


def no_arguments(trial: Trial) -> Sequence[str]:
    """None beside those that every run has."""
    return ()


def on_cpu(trial: Trial) -> Sequence[str]:
    """All networks on onnxruntime: no compiler is needed, so that a cache is filled in seconds."""
    return ("--device", "onnxruntime")


def can_be_tried(request: Request) -> str:
    """No reason why it cannot be tried on this machine."""
    return ""


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    ``inject(moment)`` prepares it in the process of the run, before that begins. ``beside(trial)``
    is entered in the process that watches when the fault begins, and left when it ends; with
    ``early``, when the process of the run begins, and it says itself when it began and ended.
    ``prepare(trial)`` is called before all, ``arguments(trial)`` are more words for the command.
    ``excuse``: why frames may stand still meanwhile; ``told``: it must be named to the user, for
    which a line on standard error with the words ``logged`` is enough, where there are some;
    ``ends``: the run ends by it; ``blind``: no picture comes meanwhile, so no DNN owes a result;
    ``elsewhere``: what it takes from DNNs they can do on another processor, and owe results;
    ``hides``: its time may be left out of the run's own figures. ``needs`` says why it cannot be
    tried, or nothing. ``by_hand`` does all of it, and returns the verdict, where that is not one
    run.
    """

    name: str
    what: str
    inject: Callable[[Moment], None] = nothing
    beside: Callable[[Trial], AbstractContextManager[object]] | None = None
    arguments: Callable[[Trial], Sequence[str]] = no_arguments
    prepare: Callable[[Trial], object] | None = None
    early: bool = False
    excuse: Excuse = Excuse.NONE
    told: bool = True
    logged: str = ""
    ends: bool = False
    blind: bool = False
    elsewhere: bool = False
    hides: bool = False
    needs: Callable[[Request], str] = can_be_tried
    by_hand: Callable[[Fault, Request, Path], dict[str, Any]] | None = None


NO_FAULT = Fault("none", "Nothing: what this machine does by itself.", told=False)
