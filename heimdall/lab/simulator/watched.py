"""What simulated DNNs look at: the luminance of real clips, for the content variation of Eq. 4."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from heimdall.capture.readers import open_clip
from heimdall.errors import ConfigError, DeviceError, unknown
from heimdall.models.luminance import luminance_difference, luminance_grid
from heimdall.system import paths

# How long a reel stays with a clip: in no step with networks that run once or twice a second.
SCENE_NS = 2_300_000_000
VIDEOS = (".mp4", ".mkv", ".webm", ".avi", ".mov")


@dataclass(frozen=True)
class Clip:
    """A clip played to and fro, which has no cut, in virtual time: picture 0 at time 0."""

    path: Path

    @property
    def files(self) -> tuple[Path, ...]:
        """All that is played."""
        return (self.path,)

    def difference(self, before_ns: int | None, now_ns: int) -> float:
        """How much the luminance has changed since ``before_ns`` (None: not looked at yet), as
        the runtime measures it between the frames of two inferences."""
        if before_ns is None:
            return 0.0
        return luminance_difference(self.seen(now_ns), self.seen(before_ns))

    def seen(self, now_ns: int) -> np.ndarray:
        """The luminance grid of the picture at that time."""
        path, index = self.place(now_ns)
        return _luminance(path)[0][index]

    def place(self, now_ns: int) -> tuple[Path, int]:
        """Which picture of which file is shown then."""
        grids, fps = _luminance(self.path)
        return self.path, _shown(now_ns, fps, len(grids))


@dataclass(frozen=True)
class Reel(Clip):
    """Several clips in turn, ``SCENE_NS`` of each, with a cut between any two; each goes on where
    it would be by then."""

    clips: tuple[Clip, ...] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(clip.path for clip in self.clips)

    def place(self, now_ns: int) -> tuple[Path, int]:
        return self.clips[now_ns // SCENE_NS % len(self.clips)].place(now_ns)


def open_watched(name_or_path: str) -> Clip:
    """A bundled clip by its name, or a video file; several, joined by ``+``, make a reel. Raises
    ConfigError where there is none."""
    if "+" in name_or_path and not Path(name_or_path).is_file():
        clips = tuple(open_watched(each) for each in name_or_path.split("+"))
        return Reel(clips[0].path, clips)
    names = [path.stem for path in (paths.ASSETS / "media").glob("*.mp4")]
    path = Path(name_or_path)
    if path.suffix not in VIDEOS:
        if name_or_path not in names:
            raise ConfigError(f"{unknown('clip', name_or_path, names)}, or give a video file")
        path = paths.ASSETS / "media" / f"{name_or_path}.mp4"
    _luminance(path)
    return Clip(path)


def _shown(now_ns: int, fps: float, count: int) -> int:
    """Which picture is shown then."""
    place = int(now_ns * fps / 1e9) % (2 * count - 2)
    return min(place, 2 * count - 2 - place)


@lru_cache
def _luminance(path: Path) -> tuple[np.ndarray, float]:
    """(the luminance grid of every picture, pictures a second)."""
    try:
        clip = open_clip(path)
    except DeviceError as error:
        raise ConfigError(str(error)) from error
    grids = []
    try:
        while (picture := clip.read()) is not None:
            grids.append(luminance_grid(picture))
    finally:
        clip.close()
    if len(grids) < 2:
        raise ConfigError(f"{path}: a change of luminance needs two pictures, not {len(grids)}")
    return np.stack(grids), clip.fps
