"""How still the furniture of shopping stands on the table of its clip, seen in its own live frames:

    python -m benchmarks.placed --runs 4                 # 20 s each, 1280x720, without a window
    python -m benchmarks.placed --press 3:n 5:n          # with more pieces

The clip is rendered (`benchmarks/home.py`), so each of its frames has an exact pose. In every frame
that is drawn the couch's place in the picture is led back to the table; *off* is how far it is from
the middle of all these places, in pixels of the picture, 640x480. Frames come from the clip as a
camera would give them, and four networks run beside.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks.home import CAMERA, FPS, SECONDS, TABLE_M, Home
from heimdall.app import load_app
from heimdall.app.options import RunOptions, parse_press
from heimdall.runtime.run import run_app
from heimdall.system.cpu import cpu_name

Places = list[tuple[int, tuple[float, float]]]


def ran(options: RunOptions) -> tuple[dict[str, Any], Places]:
    """A run's figures, and where the couch's foot was in which frame of the clip."""
    app: Any = load_app("shopping")()
    places: Places = []
    number = 0
    show, draw = app.world.show, app.draw

    def shown(frame: Any, now_ns: int) -> Any:
        nonlocal number
        number = frame.sequence % (FPS * SECONDS)
        return show(frame, now_ns)

    def drawn(scene: Any) -> None:
        draw(scene)
        couch = app.room.pieces[0]
        if app.room.in_world(couch) and app.world.tracked:
            places.append((number, couch.stood.at))

    app.world.show, app.draw = shown, drawn
    return run_app(app, options), places


def off_px(places: Places) -> np.ndarray:
    """How far each place is off, pixels."""
    home = Home()
    poses = [home.pose(number / FPS) for number, _ in places]
    rays = CAMERA.rays(np.array([at for _, at in places]))
    spots = []
    for pose, ray in zip(poses, rays, strict=True):
        way = pose.rotation.T @ ray
        spots.append(pose.position + (TABLE_M - pose.position[1]) / way[1] * way)
    spot = np.median(spots, axis=0)
    seen = np.array([CAMERA.pixels(pose.to_camera(spot[None]))[0] for pose in poses])
    return np.asarray(np.linalg.norm(seen - [at for _, at in places], axis=1))


def main() -> None:
    """Print a line a run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--press", nargs="*", default=())
    given = parser.parse_args()
    print(cpu_name())
    for _ in range(given.runs):
        options = RunOptions(
            headless=True,
            size=(1280, 720),
            seconds=given.seconds,
            build_first=True,
            press=tuple(parse_press(each) for each in given.press),
        )
        figures, places = ran(options)
        off = off_px(places)
        interval, world = figures["frame_interval_ms"], figures["world"]
        pose = "{p50:.1f} / {p99:.1f}".format(**world["pose_ms"])
        print(
            f"off px: median {np.median(off):.2f}, 95% {np.percentile(off, 95):.2f}, worst "
            f"{off.max():.2f} of {len(off)} frames; {figures['fps']['mean']:.2f} fps, "
            f"p99 {interval['p99']:.2f} ms, longest {interval['max']:.1f}, "
            f"{figures['late_frames']} late of {figures['frames']}; tracked "
            f"{100 * world['tracked']:.1f}%, pose {pose} ms"
        )


if __name__ == "__main__":
    main()
