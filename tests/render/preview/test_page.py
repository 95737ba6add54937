"""The page in a real browser, over a real run: what is drawn is seen, and what is done arrives."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.browser import WAIT_S, Page, browser, installed
from tests.served import ServedApp

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(installed() is None, reason="needs Chromium"),
]

# The clock is that of the whole machine: the test reads the same one.
APP = """
import json, time
from heimdall import App

class Mine(App):
    title = "A title"
    size = (640, 360)
    keys = {"s": "say so"}

    def note(self, **said):
        with open(LOG, "a") as log:
            log.write(json.dumps({**said, "at": time.monotonic()}) + "\\n")

    def demo_events(self):
        self.note(script=True)
        yield 3600

    def on_key(self, key):
        self.note(key=key.name, pressed=key.pressed, mods=sorted(key.mods))

    def on_pointer(self, pointer, scene):
        self.note(x=pointer.x, y=pointer.y, buttons=sorted(pointer.buttons))

    def on_scroll(self, scroll):
        self.note(dx=scroll.dx, dy=scroll.dy)
"""


class Run(ServedApp):
    """``heimdall run --serve`` in a process of its own, and what its app was told."""

    def __init__(self, folder: Path) -> None:
        halves = np.zeros((90, 160, 3), np.uint8)
        halves[:, :80, 2] = halves[:, 80:, 0] = 255  # red left, blue right
        cv2.imwrite(str(folder / "halves.png"), halves)
        super().__init__(
            *(folder, APP),
            *("--source", str(folder / "halves.png"), "--serve", "0", "--headless"),
            *("--device", "onnxruntime", "--overlay", "off", "--json"),
        )

    def told(self, **wanted: Any) -> dict[str, Any]:
        """The first line of the app's log that says this."""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            for line in self.log.read_text().splitlines():
                said = json.loads(line)
                if all(said.get(name) == value for name, value in wanted.items()):
                    return said
            time.sleep(0.01)
        raise AssertionError(f"the app was never told {wanted}: {self.log.read_text()}")

    def heard(self) -> list[dict[str, Any]]:
        """All that the app was told; from here on afresh."""
        lines = self.log.read_text().splitlines()
        self.log.write_text("")
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with Run(tmp_path_factory.mktemp("run")) as started:
        yield started


@pytest.fixture(scope="module")
def open_page(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as open_:
        yield open_


@pytest.fixture(scope="module")
def page(run, open_page):
    page = open_page(run.url)
    page.wait_for("hasPicture && find('card').hidden")
    return page


def place(page: Page, x: float, y: float) -> tuple[float, float]:
    """Where in the tab a place of the picture is, given as shares of it."""
    left, top, width, height = page.value(
        "(({left, top, width, height}) => [left, top, width, height])"
        "(canvas.getBoundingClientRect())"
    )
    scale = min(width / 640, height / 360)
    return left + width / 2 + (x - 0.5) * 640 * scale, top + height / 2 + (y - 0.5) * 360 * scale


def test_the_page_shows_what_is_drawn(page):
    shot = page.screenshot()
    for x, colour in ((0.42, (255, 0, 0)), (0.58, (0, 0, 255))):
        column, row = place(page, x, 0.5)
        difference = shot[int(row), int(column)].astype(int) - colour
        assert abs(difference).max() < 40
    assert page.value("document.title") == "A title · Heimdall"
    assert page.value("find('state').className") == "live"
    page.wait_for("/^[0-9]+ fps$/.test(find('rate').textContent)")
    page.wait_for("/^[0-9]+ ms delay$/.test(find('latency').textContent)")


def test_nothing_is_asked_of_any_other_server(page, run):
    names = page.value("performance.getEntriesByType('resource').map((each) => each.name)")
    assert {name.rsplit("/", 1)[0] + "/" for name in names} == {run.url}


def test_a_click_arrives_at_its_place(page, run, record_property):
    took_ms = []
    x, y = place(page, 0.75, 0.25)
    for _ in range(10):
        run.heard()
        page.mouse("mouseMoved", *place(page, 0.5, 0.5))
        began_s = time.monotonic()
        page.mouse("mousePressed", x, y, button="left", clickCount=1)
        pressed = run.told(buttons=["left"])
        took_ms.append(1000 * (pressed["at"] - began_s))
        page.mouse("mouseReleased", x, y, button="left", clickCount=1)
        run.told(buttons=[], x=pressed["x"])
        assert pressed["x"] == pytest.approx(480, abs=2)
        assert pressed["y"] == pytest.approx(90, abs=2)
    middle, most = sorted(took_ms)[len(took_ms) // 2], max(took_ms)
    record_property("click_to_on_pointer_ms", {"p50": round(middle, 1), "max": round(most, 1)})
    print(f"click to on_pointer: {middle:.1f} ms (median of 10), {most:.1f} ms at most")


def test_keys_arrive_under_the_names_of_a_window(page, run):
    run.heard()
    page.key("S", "KeyS", modifiers=8)
    page.key("S", "KeyS", "keyUp", modifiers=8)
    page.key("ArrowLeft", "ArrowLeft")
    page.key("ArrowLeft", "ArrowLeft", "keyUp")
    run.told(key="left", pressed=False)
    keys = [(each["key"], each["pressed"], each["mods"]) for each in run.heard() if "key" in each]
    assert keys == [
        ("s", True, ["shift"]),
        ("s", False, ["shift"]),
        ("left", True, []),
        ("left", False, []),
    ]


def test_the_browsers_own_shortcuts_stay_the_browsers(page, run):
    run.heard()
    page.key("s", "KeyS", modifiers=2)
    page.key("s", "KeyS", "keyUp", modifiers=2)
    page.key("z", "KeyZ")
    run.told(key="z", pressed=True)
    assert not [each for each in run.heard() if each.get("key") == "s"]


def test_what_is_held_is_let_go_with_the_focus(page, run):
    run.heard()
    page.key("a", "KeyA")
    page.mouse("mousePressed", *place(page, 0.5, 0.5), button="left", clickCount=1)
    run.told(key="a", pressed=True)
    run.told(buttons=["left"])
    page.value("window.dispatchEvent(new Event('blur'))")
    run.told(key="a", pressed=False)
    run.told(buttons=[])
    page.mouse("mouseReleased", *place(page, 0.5, 0.5), button="left", clickCount=1)


def test_the_wheel_scrolls_away_from_the_user_upwards(page, run):
    run.heard()
    page.mouse("mouseWheel", *place(page, 0.5, 0.5), deltaX=0, deltaY=-200)
    assert run.told(dx=0)["dy"] == pytest.approx(2)


@pytest.fixture
def fingers(page):
    """``fingers(kind, (x, y), ...)``: touchStart, touchMove, touchEnd at shares of the picture."""

    def touch(kind: str, *places: tuple[float, float]) -> None:
        points = [dict(zip("xy", place(page, *each), strict=True)) for each in places]
        page.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)

    page.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    yield touch
    page.call("Emulation.setTouchEmulationEnabled", enabled=False)


def test_a_tap_is_a_click(fingers, run):
    run.heard()
    fingers("touchStart", (0.25, 0.75))
    fingers("touchEnd")
    assert run.told(buttons=["left"])["x"] == pytest.approx(160, abs=2)
    run.told(buttons=[])


def test_a_finger_that_moves_drags(fingers, run):
    run.heard()
    fingers("touchStart", (0.25, 0.5))
    fingers("touchMove", (0.4, 0.5))
    fingers("touchMove", (0.75, 0.5))
    assert run.told(buttons=["left"])["y"] == pytest.approx(180, abs=2)
    fingers("touchEnd")
    last = run.told(buttons=[], x=pytest.approx(480, abs=2))
    assert last["y"] == pytest.approx(180, abs=2)


def test_a_long_press_is_a_right_click(fingers, run):
    run.heard()
    fingers("touchStart", (0.5, 0.5))
    assert run.told(buttons=["right"])["x"] == pytest.approx(320, abs=2)
    fingers("touchEnd")
    assert not [each for each in run.heard() if each.get("buttons") == ["left"]]


def test_two_fingers_turn_the_wheel(fingers, run):
    def turned() -> list[float]:
        lines = [each for each in run.log.read_text().split("\n") if each.endswith("}")]
        return [json.loads(each).get("dx", 0.0) for each in lines]

    run.heard()
    fingers("touchStart", (0.45, 0.5), (0.55, 0.5))
    fingers("touchMove", (0.3, 0.5), (0.7, 0.5))
    assert run.told(dx=0)["dy"] > 5
    fingers("touchMove", (0.5, 0.2), (0.5, 0.8))
    fingers("touchEnd")
    end = time.monotonic() + WAIT_S
    while not any(abs(each) > 1 for each in turned()):
        assert time.monotonic() < end
        time.sleep(0.02)


def test_buttons_are_keys(page, run):
    run.heard()
    assert page.value("find('keys').children[0].textContent") == "Ssay so"
    page.value("find('keys').children[0].click()")
    run.told(key="s", pressed=False)


def test_figures_are_charts(page):
    page.value("find('show-figures').click()")
    page.wait_for("document.querySelectorAll('#charts figure').length === 1")
    said = "document.querySelector('#charts span').textContent"
    page.wait_for(f"/^[0-9.]+ of 30 fps, [0-9]+ late$/.test({said})")
    page.wait_for("document.querySelector('#charts polyline').points.length > 3")
    line = page.value(
        "[...document.querySelector('#charts polyline').points].map(({x, y}) => [x, y])"
    )
    assert all(0 <= x <= 240 and 0 <= y <= 36 for x, y in line)
    assert "Policy " in page.value("find('summary').textContent")


@pytest.fixture
def other_page(page, run, open_page):
    """Another tab, in front of the first while it is there."""
    other = open_page(run.url)
    yield other
    other.call("Page.close")
    page.call("Page.bringToFront")


def test_upright_the_figures_are_below_the_picture(other_page):
    page = other_page
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    page.call("Emulation.setDeviceMetricsOverride", **phone)
    page.wait_for("hasPicture && !find('figures').hidden")
    boxes = "['picture', 'figures', 'end'].map((each) => find(each).getBoundingClientRect())"
    picture, figures, end = page.value(
        f"{boxes}.map(({{x, y, right, bottom}}) => ({{x, y, right, bottom}}))"
    )
    assert picture["right"] - picture["x"] == pytest.approx(390)
    assert picture["bottom"] <= figures["y"] <= figures["bottom"] <= end["y"]
    assert figures["bottom"] - figures["y"] > 300
    assert end["right"] <= 390
    page.value("find('show-figures').click()")
    assert page.value("find('figures').hidden")
    page.value("find('show-figures').click()")
    page.call("Emulation.setDeviceMetricsOverride", **{**phone, "width": 844, "height": 390})
    page.wait_for("canvas.getBoundingClientRect().height > 250")  # they lie over it again


def test_a_picture_and_a_video_are_saved(page, tmp_path):
    page.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.value("find('figures').hidden = false; find('save-picture').click()")
    picture = cv2.imread(str(arrived(tmp_path, ".png")))
    assert picture.shape == (360, 640, 3)
    assert picture[180, 100, 2] > 200 > 60 > picture[180, 100, 0]  # red at the left
    page.value("find('save-video').click()")
    page.wait_for("find('save-video').textContent === 'Stop and save'")
    time.sleep(1.5)
    page.value("find('save-video').click()")
    clip = cv2.VideoCapture(str(arrived(tmp_path, ".mp4", ".webm")))
    got, frame = clip.read()
    assert got
    assert frame.shape == (360, 640, 3)
    assert frame[180, 540, 0] > 180 > 70 > frame[180, 540, 2]  # blue at the right
    page.wait_for("find('save-video').textContent === 'Record'")
    page.value("find('show-figures').click()")


def arrived(folder: Path, *endings: str) -> Path:
    """The download with one of these endings, once it is whole."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        for file in folder.iterdir():
            if file.suffix in endings and file.stat().st_size:
                return file
        time.sleep(0.05)
    raise AssertionError(f"nothing came: {list(folder.iterdir())}")


def test_a_lost_connection_comes_back_by_itself(page):
    page.value(
        "window.before = socket;"
        "socket.addEventListener('close', (event) => { window.reason = event.reason; });"
        "socket.send('nonsense')"
    )
    assert page.wait_for("window.reason") == "the message is not JSON"
    page.wait_for("socket !== before && drawn > 0 && find('card').hidden")
    assert page.value("find('state').className") == "live"


def test_a_wrong_address_says_what_is_wrong(run, open_page):
    page = open_page(run.url[:-2] + "/")
    page.wait_for("document.body && document.body.textContent.includes('the whole address')")


def test_escape_ends_the_run_at_the_second_press(page, run):
    page.key("Escape", "Escape")
    page.key("Escape", "Escape", "keyUp")
    page.wait_for("find('toast').textContent === 'Once more to end the run'")
    assert run.process.poll() is None
    page.value("find('end').click()")  # the same by the mouse
    page.wait_for("find('headline').textContent === 'The run has ended'")
    out, _ = run.process.communicate(timeout=WAIT_S)
    assert run.process.returncode == 0
    summary = json.loads(out)
    assert summary["errors"] == []
    assert summary["frames"] > 0
    assert not any("script" in each for each in run.heard())  # a person was at the controls
