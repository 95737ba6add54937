"""Why a chunk runs where no policy preferred it: what the deadline check, the gap or the system's
own order settled before that (Heimdall, section 6.4); and why a request is dropped by any."""

from __future__ import annotations

AT_RISK = "its deadline is at risk"
ALONE = "no other job fits the gap"
GOES_ON = "its chunk goes on"
FIRST_COME = "first come"  # on processors that the policy does not decide for
_AWAITED = " is back from the CPU"
AWAITED = f"until another{_AWAITED}"

EXPIRED = "it had not begun at its deadline"

UNASKED = frozenset({FIRST_COME, GOES_ON})
SETTLED = frozenset({AT_RISK, ALONE, AWAITED})


def until_back(dnn: str) -> str:
    """The reason of a chunk that fills the time until a DNN, which should run, may."""
    return f"until {dnn}{_AWAITED}"


def kind(reason: str) -> str:
    """The same reason for whichever DNN."""
    return AWAITED if reason.endswith(_AWAITED) else reason
