"""Names what it sees: a network of the catalogue, and its boxes over the picture."""

from heimdall import DNN, App, Scene


class Boxes(App):
    """Boxes around 80 kinds of things."""

    clip = "desk.mp4"
    things = DNN(model="nanodet", rate_hz=5)

    def draw(self, scene: Scene) -> None:
        scene.boxes(self.things.tracked or [])
