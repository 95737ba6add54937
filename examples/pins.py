"""Pins stay on the thing that was clicked, when the camera moves."""

from collections.abc import Iterator

from heimdall import Anchor, App, Pointer, Scene


class Pins(App):
    """A click pins a number to the picture."""

    clip = "desk.mp4"

    def __init__(self) -> None:
        super().__init__()
        self.pins: list[Anchor] = []

    def on_pointer(self, pointer: Pointer, scene: Scene) -> None:
        if "left" in pointer.buttons:
            self.pins.append(self.anchor(scene.to_picture(pointer.x, pointer.y)))

    def draw(self, scene: Scene) -> None:
        for number, pin in enumerate(self.pins, 1):
            scene.text(f"({number})", at=pin.at, bold=True)

    def demo_events(self) -> Iterator[float]:
        yield 0.2
        self.pins.append(self.anchor((300, 300)))
