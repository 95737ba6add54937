"""The time of frames, by which animations are played, is that of the grid and not of the clock."""

import numpy as np
import pytest

from heimdall import App
from heimdall.runtime.run import run
from heimdall.system import paths


class Timed(App):
    """Keeps the time of each frame that is drawn."""

    def __init__(self):
        super().__init__()
        self.times = []

    def draw(self, scene):
        self.times.append(scene.time_s)


@pytest.mark.parametrize("fps", [30, 20])
def test_frames_that_are_counted_have_the_same_times_in_each_run(fps):
    last = []
    for _ in range(2):
        app = Timed()
        source = str(paths.ASSETS / "media" / "cup.mp4")
        run(app, headless=True, frames=5, source=source, size=(64, 64), fps=fps)
        numbers = np.array(app.times[-5:]) * fps
        assert np.allclose(numbers, numbers.round(), atol=1e-4)
        assert (np.diff(numbers.round()) >= 1).all()  # more where a frame was late
        last.append(numbers[0])
    assert last == [0, 0]  # however long the start took
