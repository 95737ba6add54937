"""How long from motion to photon, with Chromium as the phone: its camera plays a clip that carries
the numbers of its frames, and the page reads them where the camera's picture comes out and where
the app's is shown.

    python -m benchmarks.phone --size 640x480 --seconds 60 --viewers 0

Both ends are on this machine, whose cores they share; a phone has its own. With ``--view overlay``
no number comes back: how late content is is the run's own figure.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import psutil

from heimdall.app.options import parse_size
from heimdall.system import paths
from heimdall.vocabulary.enums import PhoneView
from tests.browser import Page, as_phone, browser
from tests.served import Served

BITS, SIDE = 11, 12  # of the number, and of a bit's square in a picture of 480 lines
FRAMES = 900
SCREEN = 412, 915  # CSS pixels of a common phone, upright
# The page keeps when each number came out of the camera, and when it was shown. A bit is where the
# clip has painted it: at the lower right, which neither panel nor timeline cover.
READER = """
(() => {
  const taken = new Map();
  window.ways = [];
  // Of the brightness alone, and of nothing but the row that carries the number.
  async function number(view) {
    const frame = new VideoFrame(view);
    try {
      const unit = SIDE * frame.codedHeight / 480, even = (at) => 2 * Math.floor(at / 2);
      const left = even(frame.codedWidth - (BITS + 3) * unit);
      const top = even(frame.codedHeight - 1.5 * unit);
      const rect = {x: left, y: top, width: frame.codedWidth - left, height: 2};
      const room = new Uint8Array(frame.allocationSize({rect}));
      const planes = await frame.copyTo(room, {rect});
      const bit = (at) => room[planes[0].offset + Math.round((at + 0.5) * unit)] > 127 ? 1 : 0;
      if (!bit(0) || bit(1)) return null; // one white and one black square go ahead
      let value = 0;
      for (let at = 2; at < BITS + 2; at++) value = 2 * value + bit(at);
      return value;
    } finally {
      frame.close();
    }
  }
  async function camera(now, about) {
    find("camera").requestVideoFrameCallback(camera);
    const found = await number(find("camera"));
    if (found !== null) taken.set(found, about.captureTime || now);
  }
  async function screen(now, about) {
    find("video").requestVideoFrameCallback(screen);
    window.shown = (window.shown || 0) + 1;
    const found = await number(find("video"));
    const at = taken.get(found);
    if (at === undefined) return;
    taken.delete(found);
    const way = about.expectedDisplayTime - at;
    if (way < 5000) window.ways.push([now, way]); // numbers come again every 30 s
  }
  find("camera").requestVideoFrameCallback(camera);
  find("video").requestVideoFrameCallback(screen);
})()
"""

STATS = """
phone.stats().then((reports) => {
  const found = {};
  for (const each of reports.values()) {
    if (each.type === "outbound-rtp") {
      found.out = {sent: each.framesSent, fps: each.framesPerSecond, high: each.frameHeight,
                   by: each.qualityLimitationReason, encoder: each.encoderImplementation,
                   ms: 1000 * each.totalEncodeTime / each.framesEncoded};
    } else if (each.type === "inbound-rtp") {
      found.in = {bytes: each.bytesReceived,
                  received: each.framesReceived, decoded: each.framesDecoded,
                  dropped: each.framesDropped, fps: each.framesPerSecond, pli: each.pliCount,
                  lost: each.packetsLost, freezes: each.freezeCount,
                  buffer_ms: 1000 * each.jitterBufferDelay / each.jitterBufferEmittedCount,
                  decode_ms: 1000 * each.totalDecodeTime / each.framesDecoded,
                  processing_ms: 1000 * each.totalProcessingDelay / each.framesDecoded};
    }
  }
  return found;
})
"""


def numbered(clip: Path, size: tuple[int, int], into: Path) -> Path:
    """The clip again and again as a camera's pictures of ``size``, each with its number."""
    pictures = []
    playing = cv2.VideoCapture(str(clip))
    while True:
        got, picture = playing.read()
        if not got:
            break
        pictures.append(_cut(picture, size))
    unit = round(SIDE * size[1] / 480)
    there_and_back = [*pictures, *pictures[::-1]]  # no jump, as no camera makes any
    with into.open("wb") as file:
        for number in range(FRAMES):
            picture = there_and_back[number % len(there_and_back)].copy()
            bits = [1, 0, *(number >> at & 1 for at in reversed(range(BITS)))]
            for at, bit in enumerate(bits):
                left = size[0] - (len(bits) - at + 1) * unit
                top = size[1] - 2 * unit
                picture[top - 2 : top + unit + 2, left : left + unit] = 255 * bit
            file.write(cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, 90])[1].tobytes())
    return into


def _cut(picture: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Its middle, in the shape of ``size``, scaled to that."""
    high, wide = picture.shape[:2]
    scale = max(size[0] / wide, size[1] / high)
    scaled = cv2.resize(picture, (round(wide * scale), round(high * scale)))
    top, left = (scaled.shape[0] - size[1]) // 2, (scaled.shape[1] - size[0]) // 2
    return scaled[top : top + size[1], left : left + size[0]]


class Run(Served):
    """``heimdall run APP --phone`` in a process of its own."""

    def __init__(
        self, app: str, view: str, seconds: float, size: tuple[int, int], trace: Path | None
    ) -> None:
        traced = ["--trace", str(trace)] if trace is not None else []
        super().__init__(
            *(app, "--phone", view, "--json", "--serve", "0.0.0.0:0"),
            *("--size", f"{size[0]}x{size[1]}", "--seconds", str(seconds), *traced),
        )

    def summary(self) -> dict[str, Any]:
        """What it says at its end."""
        assert self.process.stdout is not None
        text = self.process.stdout.read()
        self.process.wait()
        if not text:
            raise SystemExit(self.said)
        found: dict[str, Any] = json.loads(text)
        return found


def _warm(page: Page) -> None:
    """Until pictures come: the first start builds networks."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        if page.value("phone.flows()"):
            return
        time.sleep(0.2)
    words = page.value("document.body.innerText")
    raise SystemExit(f"no picture was shown; the page says: {words}")


def measure(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """One run, and what the page saw of its last ``seconds``."""
    clip = numbered(paths.ASSETS / "media" / args.clip, args.size, folder / "camera.mjpeg")
    trace = Path(args.trace) if args.trace else None
    run = Run(args.app, args.view, args.seconds, args.draw or args.size, trace)
    extra: dict[str, Any] = {}
    with contextlib.ExitStack() as stack:
        opened = stack.enter_context(browser(folder / "profile", SCREEN, as_phone(clip)))
        page = opened(f"{run.url}?size={args.size[0]}")
        _warm(page)
        watching = [opened(run.url) for _ in range(args.viewers)]
        if args.screenshot:
            screen = {"width": SCREEN[0], "height": SCREEN[1], "deviceScaleFactor": 2}
            page.call("Emulation.setDeviceMetricsOverride", mobile=True, **screen)
            time.sleep(8)  # until the app has found its room
            cv2.imwrite(args.screenshot, page.screenshot()[..., ::-1])
        page.value(f"const BITS = {BITS}, SIDE = {SIDE};")
        page.value(READER)
        used = psutil.Process(run.process.pid)
        # Until the run ends by itself; its last second may be cut off.
        began_s, before = time.monotonic(), used.cpu_times()
        while run.process.poll() is None:
            with contextlib.suppress(psutil.Error):
                now = used.cpu_times()
                spent = now.user + now.system - before.user - before.system
                extra["app_cores"] = round(spent / (time.monotonic() - began_s), 2)
            ways = page.value("[window.ways, performance.now(), window.shown]")
            with contextlib.suppress(AssertionError):
                extra["page"] = page.value(STATS) or extra.get("page")
            time.sleep(2)
        summary = run.summary()
        del watching
    shown, now, count = ways
    extra["shown"] = count
    extra["megabytes"] = round(extra["page"]["in"].pop("bytes") / 1e6, 1)
    lately = [(at, way) for at, way in shown if at > now - 1000 * (args.seconds - 2)]
    return {**_figures(lately), **extra, "app": _of_app(summary)}


def _figures(ways: list[tuple[float, float]]) -> dict[str, Any]:
    took = [way for _, way in ways]
    if len(took) < 2:
        return {"read": len(took)}
    span_s = (ways[-1][0] - ways[0][0]) / 1000
    return {
        "read": len(took),
        "page_fps": round((len(took) - 1) / span_s, 2),
        "p50_ms": round(statistics.median(took), 1),
        "p99_ms": round(float(np.percentile(took, 99)), 1),
        "max_ms": round(max(took), 1),
    }


def _of_app(summary: dict[str, Any]) -> dict[str, Any]:
    kept = (
        "fps",
        "frame_interval_ms",
        "longest_interval_ms",
        "render_ms",
        "picture_age_ms",
        "late_frames",
        "errors",
        "phone",
        "outputs",
    )
    return {name: summary[name] for name in kept if name in summary} | {
        "dnns": {name: each["achieved_hz"] for name, each in summary["dnns"].items()}
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--app", default="shopping")
    parser.add_argument("--clip", default="room.mp4", help="of assets/media")
    parser.add_argument("--size", type=parse_size, default=(640, 480), help="of the camera")
    parser.add_argument("--draw", type=parse_size, help="what the app draws; else the camera's")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--view", choices=PhoneView.values(), default="video")
    parser.add_argument("--viewers", type=int, default=0, help="pages that watch")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--trace", help="a file for the pictures' ways")
    parser.add_argument("--screenshot", help="a file for the page as it is")
    args = parser.parse_args()
    for _ in range(args.runs):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            print(json.dumps(measure(args, Path(folder))), flush=True)


if __name__ == "__main__":
    main()
