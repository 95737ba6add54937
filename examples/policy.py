"""A policy of your own in an app: in each gap, the network whose last result is oldest."""

from collections.abc import Sequence

from heimdall import DNN, App, Greedy, Scene
from heimdall.schedulers.base import JobView, View


class Oldest(Greedy):
    """The job that has waited longest; deadlines come first."""

    name = reason = "oldest"

    def prefer(self, view: View, now_ns: int, jobs: Sequence[JobView]) -> JobView:
        return min(jobs, key=lambda job: job.arrival_ns)


class OldestFirst(App):
    """Two networks by that policy."""

    clip = "single_face.mp4"
    scheduler = Oldest
    face = DNN(model="centerface", rate_hz=3)
    people = DNN(model="selfie", rate_hz=3)

    def draw(self, scene: Scene) -> None:
        if self.people.tracked is not None:
            scene.mask(self.people.tracked, "#2dd4bf")
        scene.boxes(self.face.tracked or [])
