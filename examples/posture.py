"""Draws the joints of a body."""

from heimdall import DNN, App, Scene


class Posture(App):
    """A skeleton over a person."""

    clip = "single_face.mp4"
    body = DNN(model="movenet", rate_hz=5)

    def draw(self, scene: Scene) -> None:
        scene.bodies(self.body.tracked or [])
