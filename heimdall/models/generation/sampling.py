"""From logits to the next token."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heimdall.errors import ArgumentError


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen: the likeliest where ``temperature`` is 0; else by chance, among the
    ``top_k`` likeliest (0: all), of these among the likeliest that have ``top_p`` of the
    probability together (Holtzman et al. 2020). ``seed``: of that chance."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int | None = None

    def __post_init__(self) -> None:
        if not self.temperature >= 0:
            raise ArgumentError("must be 0 or more", argument="temperature", value=self.temperature)
        if self.top_k < 0:
            raise ArgumentError("must be 0 (all) or more", argument="top_k", value=self.top_k)
        if not 0 < self.top_p <= 1:
            raise ArgumentError("must be above 0, at most 1", argument="top_p", value=self.top_p)

    def random(self) -> np.random.Generator:
        """The chance of one answer."""
        return np.random.default_rng(self.seed)

    def choose(self, logits: np.ndarray, chance: np.random.Generator) -> int:
        """A token, by ``logits`` of shape (vocabulary,)."""
        if self.temperature == 0:
            return int(logits.argmax())
        order = np.argsort(-logits, kind="stable")[: self.top_k or None]
        scaled = (logits[order] - logits[order[0]]).astype(np.float64) / self.temperature
        shares = np.exp(scaled)
        shares /= shares.sum()
        before = np.cumsum(shares) - shares
        kept = before < self.top_p
        shares = shares[kept] / shares[kept].sum()
        return int(chance.choice(order[kept], p=shares))
