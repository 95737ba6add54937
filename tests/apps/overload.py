"""Shopping under more load than the GPU can take: 60 fps, and a restyle requested every frame
for ``OVERLOAD_S`` seconds; then a quiet time in which moved DNNs may come back."""

from __future__ import annotations

from collections.abc import Iterator

from heimdall.app import load_app

OVERLOAD_S = 8.0


class Overload(load_app("shopping")):  # type: ignore[misc]
    fps = 60

    def demo_events(self) -> Iterator[float]:
        for _ in range(round(OVERLOAD_S * self.fps)):
            self.restyle(self.wanted + 1)
            yield 1 / self.fps
        while True:
            yield 2.0
            self.restyle(self.wanted + 1)
