"""Reads the text in the picture, once a second."""

from heimdall import DNN, App, Scene


class Reading(App):
    """Text lines, read."""

    clip = "desk.mp4"
    lines = DNN(model="ocr", rate_hz=1, max_rate_hz=1)

    def draw(self, scene: Scene) -> None:
        for line in self.lines.tracked or []:
            scene.text(line.text, at=tuple(line.corners[3]), size=16)
