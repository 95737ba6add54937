"""Colours the people in the picture."""

from heimdall import DNN, App, Scene


class Masks(App):
    """People in turquoise."""

    clip = "single_face.mp4"
    people = DNN(model="selfie", rate_hz=10)

    def draw(self, scene: Scene) -> None:
        if self.people.tracked is not None:
            scene.mask(self.people.tracked, color="#2dd4bf", opacity=0.6)
