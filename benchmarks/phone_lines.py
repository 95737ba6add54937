"""How soon a phone's pictures are back: after its page is loaded again, its network was gone for
five seconds, and it has slept. And what viewers cost.

    sudo python -m benchmarks.phone_lines --rounds 5

Chromium is the phone, in a network of its own (Linux, with `ip netns`, as root).
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from benchmarks.phone import Run, numbered
from heimdall.system import paths
from tests.browser import Page, as_phone, browser

NAME, OURS, THEIRS = "heimdall-phone", "198.18.7.1", "198.18.7.2"  # a range kept for benchmarks
CUT_S, ASLEEP_S, LONGEST_S = 5.0, 10.0, 20.0
_NEWNET = 0x40000000


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@contextlib.contextmanager
def network() -> Iterator[None]:
    """A network with one other machine in it."""
    _ip("netns", "add", NAME)
    try:
        _ip("link", "add", "hd-ours", "type", "veth", "peer", "name", "hd-theirs")
        _ip("link", "set", "hd-theirs", "netns", NAME)
        _ip("addr", "add", f"{OURS}/30", "dev", "hd-ours")
        _ip("link", "set", "hd-ours", "up")
        _ip("-n", NAME, "addr", "add", f"{THEIRS}/30", "dev", "hd-theirs")
        _ip("-n", NAME, "link", "set", "hd-theirs", "up")
        _ip("-n", NAME, "link", "set", "lo", "up")
        yield
    finally:
        subprocess.run(["ip", "link", "del", "hd-ours"], check=False)
        _ip("netns", "del", NAME)


def _move_to(namespace: str) -> None:
    """This thread, and what it starts from now on."""
    with open(namespace) as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


# When a picture was first shown after a moment, in s since 1970; null: not yet.
SHOWN = """
typeof phone !== "object" ? null : (() => {
  if (!window.times) {
    window.times = [];
    let last = 0;
    const note = (now, about) => {
      video.requestVideoFrameCallback(note);
      if (about.rtpTimestamp === last) return; // the same again
      last = about.rtpTimestamp;
      times.push((performance.timeOrigin + performance.now()) / 1000);
    };
    video.requestVideoFrameCallback(note);
  }
  return times.find((at) => at > SINCE) || null;
})()
"""


def _back_s(page: Page, since_s: float | None = None) -> float:
    """Seconds from then, or now, until the next picture is shown."""
    since_s = since_s or time.time()
    while time.time() - since_s < LONGEST_S:
        with contextlib.suppress(AssertionError, KeyError):  # while it loads
            if (shown_s := page.value(SHOWN.replace("SINCE", str(since_s)))) is not None:
                return float(shown_s) - since_s
        time.sleep(0.02)
    return LONGEST_S


def _reload(page: Page, run: Run) -> float:
    since_s = time.time()
    page.call("Page.reload")
    page.wait_for("!window.times")  # the new page
    return _back_s(page, since_s)


def _cut(page: Page, run: Run) -> float:
    ours = ["nsenter", f"--net=/proc/{run.process.pid}/ns/net", "ip", "link", "set", "hd-ours"]
    subprocess.run([*ours, "down"], check=True)
    time.sleep(CUT_S)
    since_s = time.time()
    assert page.value(SHOWN.replace("SINCE", str(since_s - CUT_S / 2))) is None, (
        "the network was not gone"
    )
    subprocess.run([*ours, "up"], check=True)
    return _back_s(page, since_s)


def _sleep(page: Page, run: Run) -> float:
    """All of the browser stands still, as a phone does whose screen is off."""
    browsing = [
        each
        for each in psutil.Process().children(recursive=True)
        if each.pid != run.process.pid and "chrom" in each.name()
    ]
    for each in browsing:
        each.suspend()
    time.sleep(ASLEEP_S)
    since_s = time.time()
    for each in browsing:
        each.resume()
    return _back_s(page, since_s)


TROUBLES: dict[str, Callable[[Page, Run], float]] = {
    "reload": _reload,
    "cut": _cut,
    "sleep": _sleep,
}


def _cores(run: Run, seconds: float) -> float:
    process = psutil.Process(run.process.pid)
    before, began_s = process.cpu_times(), time.monotonic()
    time.sleep(seconds)
    now = process.cpu_times()
    spent = now.user + now.system - before.user - before.system
    return spent / (time.monotonic() - began_s)


def measure(rounds: int, folder: Path) -> dict[str, Any]:
    """All of it."""
    clip = numbered(paths.ASSETS / "media" / "room.mp4", (640, 480), folder / "camera.mjpeg")
    found: dict[str, Any] = {}
    with contextlib.ExitStack() as stack:
        stack.enter_context(network())
        run = Run("shopping", "video", 3600, (640, 480), None)
        stack.callback(run.process.kill)
        own = f"/proc/self/task/{os.getpid()}/ns/net"
        home = os.open(own, os.O_RDONLY)
        stack.callback(lambda: ctypes.CDLL(None).setns(home, _NEWNET))
        _move_to(f"/run/netns/{NAME}")
        where = run.url.split("/", 3)
        url = f"https://{OURS}:{where[2].rsplit(':', 1)[1]}/{where[3]}"
        opened = stack.enter_context(browser(folder / "profile", (412, 915), as_phone(clip)))
        page = opened(url)
        _back_s(page)
        time.sleep(5)
        for name, trouble in TROUBLES.items():
            took = []
            for _ in range(rounds):
                took.append(trouble(page, run))
                time.sleep(2)
            found[name] = {
                "median_s": round(statistics.median(took), 2),
                "max_s": round(max(took), 2),
            }
            print(name, [round(each, 2) for each in took], flush=True)
        alone = _cores(run, 10)
        for _ in range(2):
            opened(url)
        time.sleep(5)
        page.call("Page.bringToFront")
        both = _cores(run, 10)
        found["cores"] = {"alone": round(alone, 3), "with_two_viewers": round(both, 3)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        print(json.dumps(measure(args.rounds, Path(folder))))


if __name__ == "__main__":
    main()
