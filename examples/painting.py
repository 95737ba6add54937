"""Paints the picture when S is pressed: a network that runs on request, ahead of others."""

from collections.abc import Iterator

import numpy as np

from heimdall import DNN, App, Key, Scene


class Painting(App):
    """S paints it: the left half shows the painting."""

    clip = "desk.mp4"
    style = DNN(model="multistyle", on_event=True, priority="high", options={"size": (320, 320)})

    def draw(self, scene: Scene) -> None:
        if self.style.latest is not None:
            width, height = scene.picture_size
            corners = np.array([(0, 0), (width / 2, 0), (width / 2, height), (0, height)])
            scene.picture(self.style.latest.image, corners)

    def on_key(self, key: Key) -> None:
        if key.pressed and key.name == "s":
            self.style.request(style=7)

    def demo_events(self) -> Iterator[float]:
        yield 0.2
        self.style.request(style=7)
