"""How a network hears: the windows of sound that it is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from heimdall.errors import ConfigError

_LEAST_HZ, _MOST_HZ = 1000, 192000
_MOST_S = 60


@dataclass(frozen=True)
class Hearing:
    """Windows of ``window`` samples at ``rate`` Hz, one every ``hop`` samples (0: each begins where
    the last one ended). Raises ConfigError for numbers that cannot be."""

    rate: int = 16000
    window: int = 512
    hop: int = 0

    def __post_init__(self) -> None:
        _check("rate", self.rate, _LEAST_HZ, _MOST_HZ)
        _check("window", self.window, 1, self.rate * _MOST_S)
        _check("hop", self.hop, 0, self.window)

    @property
    def step(self) -> int:
        """Samples from one window to the next."""
        return self.hop or self.window

    @property
    def rate_hz(self) -> float:
        """Windows a second."""
        return self.rate / self.step


def _check(name: str, value: int, least: int, most: int) -> None:
    if not isinstance(value, int) or not least <= value <= most:
        raise ConfigError(
            f"{name} of a Hearing must be a whole number from {least} to {most}, not {value!r}"
        )


# What the bundled networks hear, by their names in the catalogue: a DNN of them need not say it.
# Silero's network wants 32 ms, and the 4 ms before them (64 samples) again.
BUNDLED: Mapping[str, Hearing] = {
    "speech": Hearing(16000, 512 + 64, hop=512),
    "keywords": Hearing(16000, 16000, hop=1600),
}


def hearing_of(model: object) -> Hearing | None:
    """What a model, by name or a Pipeline, says itself that it hears; None: nothing."""
    return BUNDLED.get(model) if isinstance(model, str) else getattr(model, "hears", None)
