"""What is asked of trials, and of the process of one."""

from __future__ import annotations

from dataclasses import dataclass

from heimdall.app.options import check_number


@dataclass(frozen=True)
class Request:
    """``seconds``: how long a run lasts after its warm-up; its fault is there in the middle third.
    ``device``, ``size``: as of ``heimdall run``. ``count``: signals at random moments. Raises
    ArgumentError for a time or number that makes no sense."""

    app: str = "shopping"
    seconds: float = 15.0
    device: str | None = None
    size: tuple[int, int] | None = None
    count: int = 200

    def __post_init__(self) -> None:
        check_number("seconds", self.seconds, least=3)
        check_number("count", self.count, least=1)

    @property
    def third_s(self) -> float:
        """How long a fault is there, and the run before and after it."""
        return self.seconds / 3

    @property
    def arguments(self) -> list[str]:
        """The words of the command line for it."""
        more = ["--seconds", f"{self.seconds:g}"]
        more += ["--device", self.device] if self.device else []
        more += ["--size", f"{self.size[0]}x{self.size[1]}"] if self.size else []
        return [self.app, *more]


@dataclass(frozen=True)
class Spec:
    """What the process of a run is told: which fault to inject, when and for how long, and what to
    type after ``heimdall``. ``notes``: the pipe that it writes to."""

    fault: str
    after_s: float
    lasts_s: float
    notes: int
    arguments: list[str]
