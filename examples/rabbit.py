"""A rabbit stands on a printed page, at its true size: the marker says where the camera is."""

from heimdall import App, Marker, Scene, World


class Rabbit(App):
    """Print assets/media/page.png, or watch the clip."""

    clip = "page.mp4"
    world = World(Marker("DICT_4X4_50", 7, 0.08))

    def draw(self, scene: Scene) -> None:
        scene.model("rabbit.glb", at=self.world.origin)
