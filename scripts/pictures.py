"""Draws docs/images: of every app a short clip; of every example, and of apps that pages of
docs/learn write, a small picture.

python scripts/pictures.py [APP...]    what `make pictures` runs; "examples" and "learn" for those

Pictures show what the machine does at that moment: take them when nothing else runs.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import cv2
from PIL import Image

from heimdall.errors import DeviceError, HeimdallError
from heimdall.system.paths import replace_file

ROOT = Path(__file__).resolve().parents[1]
IMAGES, MEDIA = ROOT / "docs" / "images", ROOT / "assets" / "media"
LEARN = ROOT / "docs" / "learn"
PAGE_CODE = re.compile(r"^```python[^\n]*\n(# (\w+\.py)\n.*?)^```", re.DOTALL | re.MULTILINE)
CLIP_WIDTH, CLIP_FPS, CLIP_S, CLIP_BYTES = 480, 12, 4.0, 400_000
QUALITY = 75  # of a still
FULL_RATE, TRIES = 0.97, 3  # of the frame rate: below, the machine was busy, and we try again


@dataclass(frozen=True)
class Shown:
    """Where docs/learn shows an app that a page of it writes, and how."""

    page: str
    name: str  # of the picture
    step: int = -1  # which of the states in which the page has the app's file
    view: str = "off"  # of the overlay
    width: int = 560


@dataclass(frozen=True)
class Take:
    """A run without window: what it draws last is kept."""

    app: str
    source: str  # in assets/media
    size: str  # of the source's shape, or wider where the panel would cover it
    seconds: float
    moving: bool  # a clip of the last seconds, or the last frame
    presses: tuple[str, ...] = ()
    learn: Shown | None = None

    @property
    def group(self) -> str:
        """What takes it, as a word of the command line."""
        if self.learn is not None:
            return "learn"
        return "examples" if self.app.endswith(".py") else self.app

    @property
    def overlay(self) -> str:
        if self.moving:
            return "small"
        if self.learn is not None:
            return self.learn.view
        return "off"

    @property
    def width(self) -> int:
        """Of a picture."""
        return self.learn.width if self.learn is not None else CLIP_WIDTH

    @property
    def image(self) -> str:
        if self.learn is not None:
            return f"learn-{self.learn.name}.webp"
        if self.group == "examples":
            return f"example-{Path(self.app).stem}.webp"
        return f"{self.app}.webp"


TAKES = (
    Take("shopping", "room.mp4", "960x720", 9, True, ("5:n", "6:n", "7:n", "8:n", "8.5:n")),
    Take("emoji", "single_face.mp4", "1280x720", 8, True, ("1:c",)),
    Take("workspace", "desk.mp4", "960x720", 8, True),
    Take("marker", "page.mp4", "960x720", 9.4, True),
    Take("surroundings", "single_face.mp4", "1280x720", 8, True),
    Take("assistant", "cup.mp4", "1280x720", 8, True),
    Take("examples/boxes.py", "cup.mp4", "640x480", 4, False),
    Take("examples/hands.py", "cup.mp4", "640x480", 4, False),
    Take("examples/masks.py", "single_face.mp4", "640x360", 3, False),
    Take("examples/painting.py", "desk.mp4", "640x480", 5, False, ("1:s",)),
    Take("examples/pins.py", "desk.mp4", "640x480", 3, False),
    Take("examples/policy.py", "single_face.mp4", "640x360", 3, False),
    Take("examples/posture.py", "single_face.mp4", "640x360", 3, False),
    Take("examples/rabbit.py", "page.mp4", "640x480", 3, False),
    Take("examples/reading.py", "desk.mp4", "640x480", 5, False),
    Take(
        *("room.py", "box.mp4", "1280x720", 3.5, False),
        learn=Shown("first-app.md", "boxes", step=0, view="panel", width=800),
    ),
    Take(
        *("room.py", "box.mp4", "640x480", 5.5, False, ("0.2:s",)),
        learn=Shown("first-app.md", "couch"),
    ),
    Take(
        *("red.py", "box.mp4", "960x720", 6, False),
        learn=Shown("own-network.md", "red", view="panel"),
    ),
    Take(*("stand.py", "page.mp4", "640x480", 2, False), learn=Shown("world.md", "stand")),
    Take(
        *("walk.py", "room.mp4", "1280x720", 8, False),
        learn=Shown("world.md", "walk", view="world", width=800),
    ),
)


def picture(take: Take, folder: Path) -> Path:
    """The best of a few tries, written to docs/images; returns where."""
    best, content = 0.0, b""
    for _ in range(TRIES):
        share, shot = shoot(take, folder)
        if share > best:
            best, content = share, shot
        if share >= FULL_RATE:
            break
        print(f"{take.app}: only {share:.0%} of the frame rate: is the machine busy?", flush=True)
    path = IMAGES / take.image
    replace_file(path, content)
    return path


def shoot(take: Take, folder: Path) -> tuple[float, bytes]:
    """Run the app: the share of its frame rate that it reached, and its picture."""
    raw = folder / ("take.mp4" if take.moving else "take.png")
    app = take.app if take.learn is None else str(written(take.app, take.learn, folder))
    command = [sys.executable, "-m", "heimdall", "run", app, "--overlay", take.overlay]
    command += ["--source", str(MEDIA / take.source), "--size", take.size, "--headless", "--json"]
    command += ["--seconds", str(take.seconds), "--record" if take.moving else "--screenshot"]
    command += [str(raw), *(word for press in take.presses for word in ("--press", press))]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise DeviceError(f"{take.app}: its run ended with status {done.returncode}; see above")
    summary = json.loads(done.stdout)
    share = summary["fps"]["mean"] / summary["fps_target"]
    if take.moving:
        return share, clip(raw, summary["fps_target"])
    return share, still(raw, take.width)


def written(app: str, shown: Shown, folder: Path) -> Path:
    """The app that a page writes, in one of its states, with the files that it needs."""
    states = []
    for code, name in PAGE_CODE.findall((LEARN / shown.page).read_text(encoding="utf-8")):
        if name == app:
            states.append(code)
        elif name.startswith("make_"):  # the file of a network
            (folder / name).write_text(code, encoding="utf-8")
            subprocess.run([sys.executable, name], cwd=folder, check=True)
    path = folder / app
    path.write_text(states[shown.step], encoding="utf-8")
    return path


def still(path: Path, width: int) -> bytes:
    """A picture as WebP, so many pixels wide."""
    data = io.BytesIO()
    with Image.open(path) as opened:
        picture = opened.convert("RGB")
    height = round(picture.height * width / picture.width)
    picture.resize((width, height)).save(data, "WEBP", quality=QUALITY, method=6)
    return data.getvalue()


def clip(path: Path, fps: float) -> bytes:
    """The last seconds of a video as an animated WebP, in the best quality that is small enough."""
    frames = last_frames(path, round(CLIP_S * fps))
    chosen = [frames[round(k * fps / CLIP_FPS)] for k in range(int(len(frames) * CLIP_FPS / fps))]
    pictures = [Image.fromarray(small(frame)[..., ::-1]) for frame in chosen]
    for quality in (75, 65, 55, 45, 35, 25, 15):
        data = io.BytesIO()
        options = {"quality": quality, "method": 6, "duration": round(1000 / CLIP_FPS), "loop": 0}
        pictures[0].save(data, "WEBP", save_all=True, append_images=pictures[1:], **options)
        if data.tell() <= CLIP_BYTES:
            return data.getvalue()
    raise DeviceError(f"{path}: a clip of it takes {data.tell():,} bytes, {CLIP_BYTES:,} at most")


def last_frames(path: Path, count: int) -> list[cv2.typing.MatLike]:
    """The last frames of a video, BGR; all of them if it has fewer."""
    video = cv2.VideoCapture(str(path))
    frames: list[cv2.typing.MatLike] = []
    while (read := video.read())[0]:
        frames = [*frames[1 - count :], read[1]]
    video.release()
    if not frames:
        raise DeviceError(f"{path}: no frame can be read")
    return frames


def small(frame: cv2.typing.MatLike) -> cv2.typing.MatLike:
    """A frame as wide as clips are."""
    height = round(frame.shape[0] * CLIP_WIDTH / frame.shape[1])
    return cv2.resize(frame, (CLIP_WIDTH, height), interpolation=cv2.INTER_AREA)


def main(apps: list[str]) -> int:
    """Shoot the takes of these apps, or all."""
    names = sorted({take.group for take in TAKES})
    if unknown := [app for app in apps if app not in names]:
        print(f"no pictures of {', '.join(unknown)}: choose of {', '.join(names)}", file=sys.stderr)
        return 2
    IMAGES.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            for take in TAKES:
                if not apps or take.group in apps:
                    path = picture(take, Path(folder))
                    print(
                        f"{path.relative_to(ROOT)}  {path.stat().st_size / 1e3:.0f} kB", flush=True
                    )
    except HeimdallError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
