"""A GPU that gets hot: after a while it works slower, and what profiled it must notice.

A phone that is held at its limit lowers its clock after a minute or two. ``[throttle]`` of a
scenario, or ``throttle`` of a machine, says when and how much.
"""

from __future__ import annotations

from collections.abc import Callable


def throttled(
    noise: Callable[[], float],
    throttle: tuple[float, float] | None,
    counted_ns: Callable[[], int],
) -> Callable[[], float]:
    """Factors of the GPU's times: those of ``noise``, and from ``throttle`` (seconds, factor) on so
    many times those. ``counted_ns``: the time since the end of the warm-up; before, it is cool."""
    if throttle is None:
        return noise
    after_s, factor = throttle
    return lambda: noise() * (factor if counted_ns() >= after_s * 1e9 else 1.0)
