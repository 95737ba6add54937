"""A phone's page in a real browser, over a real run: the camera's picture comes back drawn upon,
and what befalls a phone befalls it here."""

from __future__ import annotations

import json
import time

import cv2
import numpy as np
import onnx
import pytest
from onnx import helper

from tests.browser import WAIT_S, Page, as_phone, browser, installed
from tests.graph.models import model
from tests.served import on_a_phone

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(installed() is None, reason="needs Chromium"),
]

APP = """
import numpy as np
from heimdall import App

class Mine(App):
    title = "A title"
    size = (640, 360)
    keys = {"s": "say so"}

    def draw(self, scene):
        if STAMPED:
            green = np.full((2, 2, 4), (0, 200, 0, 255), np.uint8)
            scene.picture(green, [[400, 133], [600, 133], [600, 333], [400, 333]])

    def on_pointer(self, pointer, scene):
        with open(LOG, "a") as log:
            log.write(f"{pointer.x:.0f} {pointer.y:.0f} {sorted(pointer.buttons)}\\n")
"""


EAR = """
from heimdall import App, DNN, Hearing

def decode(outputs, context):
    with open(LOG, "a") as log:
        log.write(f"{outputs['loud'].item():.3f}\\n")

class Mine(App):
    size = (640, 360)
    dnns = (
        DNN("ear", model=NETWORK, hears=Hearing(16000, 1600), decode=decode,
            preprocess=lambda sound: {"sound": sound.samples[None]}),
    )
"""


@pytest.fixture(scope="module")
def loudness(tmp_path_factory):
    """A network that says how loud its window is."""
    nodes = [
        helper.make_node("Abs", ["sound"], ["a"]),
        helper.make_node("ReduceMax", ["a"], ["loud"], axes=[1], keepdims=1),
    ]
    path = tmp_path_factory.mktemp("network") / "loud.onnx"
    onnx.save(model(nodes, {"sound": [1, 1600]}, ["loud"]), path)
    return EAR.replace("NETWORK", repr(str(path)))


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    """What a camera sees: red at the left, blue at the right, and a square that moves."""
    file = tmp_path_factory.mktemp("clip") / "camera.mjpeg"
    with file.open("wb") as opened:
        for number in range(60):
            picture = np.zeros((480, 640, 3), np.uint8)
            picture[:, :320, 2] = picture[:, 320:, 0] = 220
            picture[100:140, 10 * number : 10 * number + 40] = 255
            opened.write(cv2.imencode(".jpg", picture)[1].tobytes())
    return file


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    source = APP.replace("STAMPED", "False")
    with on_a_phone(tmp_path_factory.mktemp("run"), source, "video") as started:
        yield started


@pytest.fixture(scope="module")
def open_page(tmp_path_factory, clip):
    with browser(tmp_path_factory.mktemp("browser"), (412, 915), as_phone(clip)) as open_:
        yield open_


@pytest.fixture(scope="module")
def page(run, open_page):
    page = open_page(run.url)
    page.wait_for("phone.flows() && find('card').hidden")
    page.own_width = page.value("innerWidth")
    return page


def turned(page: Page, width: int, height: int) -> None:
    page.call(
        "Emulation.setDeviceMetricsOverride",
        **{"width": width, "height": height, "deviceScaleFactor": 2, "mobile": True},
    )


def box(page: Page, name: str) -> dict[str, float]:
    found: dict[str, float] = page.value(f"find('{name}').getBoundingClientRect().toJSON()")
    return found


def test_the_cameras_picture_comes_back(page):
    page.wait_for("video.videoWidth === 480 && video.videoHeight === 360")
    shot = page.screenshot()
    place = box(page, "video")
    scale = shot.shape[1] / page.value("innerWidth")
    row = int((place["top"] + place["height"] / 2) * scale)
    left, right = (
        shot[row, int((place["left"] + share * place["width"]) * scale)] for share in (0.3, 0.7)
    )
    assert left[0] > 150 > left[2]
    assert right[2] > 150 > right[0]
    page.wait_for("/^[0-9]+ ms delay$/.test(find('latency').textContent)")


@pytest.mark.parametrize("size", [(412, 915), (915, 412), (360, 640), (320, 568)])
def test_it_fills_a_screen_of_any_size_and_nothing_scrolls(page, size):
    turned(page, *size)
    try:
        assert page.value("[innerWidth, innerHeight]") == list(size)
        assert page.value(
            "document.documentElement.scrollHeight <= innerHeight"
            " && document.documentElement.scrollWidth <= innerWidth"
        )
        place = box(page, "video")
        assert (place["width"], place["height"]) == size
        for name in ("end", "show-keys", "show-figures", "fill"):
            button = box(page, name)
            assert button["right"] <= size[0]
            assert button["bottom"] <= size[1]
            assert min(button["width"], button["height"]) >= 44
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")
        page.wait_for(f"innerWidth === {page.own_width}")


def test_a_tap_arrives_where_the_camera_saw_it(page, run):
    place = box(page, "video")
    scale = min(place["width"] / 480, place["height"] / 360)
    x = place["left"] + place["width"] / 2 - 0.25 * 480 * scale
    y = place["top"] + place["height"] / 2
    page.call("Emulation.setTouchEmulationEnabled", enabled=True)
    page.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
    page.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    page.call("Emulation.setTouchEmulationEnabled", enabled=False)
    end = time.monotonic() + WAIT_S
    while "['left']" not in (said := run.log.read_text()):
        assert time.monotonic() < end
        time.sleep(0.02)
    across, down = map(int, next(line for line in said.splitlines() if "left" in line).split()[:2])
    assert abs(across - 120) < 4
    assert abs(down - 180) < 4


def test_an_overlay_is_laid_over_the_phones_own_camera(tmp_path, open_page):
    source = APP.replace("STAMPED", "True")
    with on_a_phone(tmp_path, source, "overlay") as over:
        page = open_page(over.url)
        page.wait_for("phone.flows() && find('card').hidden && !find('content').hidden")
        page.wait_for("content.width === 480 && content.height === 360")
        assert page.value("video.hidden && !find('camera').hidden")
        assert page.value("[video.videoWidth, video.videoHeight]") == [480, 720]
        place, shot = box(page, "content"), page.screenshot()
        assert place == box(page, "camera")
        unit = shot.shape[1] / page.value("innerWidth")
        scale = min(place["width"] / 480, place["height"] / 360)
        middle = place["left"] + place["width"] / 2, place["top"] + place["height"] / 2

        def colour(x: float, y: float) -> np.ndarray:
            across, down = middle[0] + (x - 240) * scale, middle[1] + (y - 180) * scale
            return shot[int(down * unit), int(across * unit)].astype(int)

        assert np.abs(colour(375, 175) - (0, 200, 0)).max() < 30
        assert colour(120, 175)[0] > 180 > 60 > colour(120, 175)[1]  # the camera's red
        assert colour(375, 300)[2] > 180 > 60 > colour(375, 300)[1]  # and its blue
        across, down = middle[0] + 60 * scale, middle[1]
        page.mouse("mousePressed", across, down, button="left", buttons=1, clickCount=1)
        page.mouse("mouseReleased", across, down, button="left", buttons=0, clickCount=1)
        end = time.monotonic() + WAIT_S
        while "['left']" not in (said := over.log.read_text()):
            assert time.monotonic() < end
            time.sleep(0.02)
        assert abs(int(said.splitlines()[-1].split()[0]) - 300) < 6
        page.call("Page.close")


def test_the_phones_microphone_is_heard(tmp_path, open_page, loudness):
    with on_a_phone(tmp_path, loudness, "video") as ear:
        page = open_page(ear.url)
        page.wait_for("phone.flows() && find('card').hidden")
        end = time.monotonic() + WAIT_S
        while max(map(float, ear.log.read_text().split()), default=0.0) < 0.05:  # Chromium's beep
            assert time.monotonic() < end, ear.said
            time.sleep(0.1)
        page.call("Page.close")


def test_without_the_microphone_the_run_goes_on_and_both_say_so(tmp_path, open_page, loudness):
    with on_a_phone(tmp_path, loudness, "video") as ear:
        page = open_page("about:blank#")
        page.call(
            "Page.addScriptToEvaluateOnNewDocument",
            source="const given = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);"
            "navigator.mediaDevices.getUserMedia = (wanted) => wanted.audio"
            " ? Promise.reject(new DOMException('not for you', 'NotAllowedError')) : given(wanted)",
        )
        page.navigate(ear.url)
        page.wait_for("find('toast').textContent === 'The run hears nothing: not for you'")
        page.wait_for("phone.flows() && find('card').hidden")
        end = time.monotonic() + WAIT_S
        while "allow its page to use the microphone" not in ear.said:
            assert time.monotonic() < end, ear.said
            time.sleep(0.1)
        page.call("Page.close")


def test_a_page_that_is_loaded_again_goes_on(page):
    page.call("Page.reload")
    page.wait_for("document.readyState === 'complete' && typeof phone === 'object'")
    page.wait_for("phone.flows() && find('card').hidden")


def test_a_lost_socket_comes_back_with_its_pictures(page):
    page.value("window.old = socket; window.before = video.srcObject; socket.close()")
    page.wait_for("socket !== old && socket.readyState === WebSocket.OPEN")
    page.wait_for("video.srcObject !== before")
    page.wait_for("phone.flows() && find('card').hidden && find('state').className === 'live'")


def test_a_line_that_breaks_is_laid_anew(page):
    page.value("phone.cut()")  # for good: it is laid anew
    page.wait_for("!phone.flows()")
    page.wait_for("phone.flows() && find('card').hidden")


def test_a_second_phone_is_told_and_watches(page, run, open_page):
    other = open_page(run.url)
    other.wait_for("phone.flows() && find('card').hidden")
    assert other.value("document.body.classList.contains('watches')")
    assert "another phone drives" in other.value("find('toast').textContent")
    assert not page.value("document.body.classList.contains('watches')")
    other.call("Page.close")


def test_a_clock_that_runs_fast_is_followed_while_the_video_flows(page):
    """By 1%: the answers come by the channel then."""
    before = page.value("phone.offset()")
    page.value(
        "(() => { const own = performance.now.bind(performance), began = own();"
        " performance.now = () => own() + 0.01 * (own() - began); })()"
    )
    page.wait_for(f"phone.flows() && phone.offset() - {before} < -40")
    page.value("location.reload()")
    page.wait_for("typeof phone === 'object' && phone.flows()")


def test_a_tab_that_was_duplicated_is_another_page(page, run, open_page):
    name = page.value("phone.named")
    other = open_page(run.url)
    other.value(f"sessionStorage.page = '{name}'")  # as a browser copies it
    other.navigate("about:blank#")
    other.navigate(run.url)
    other.wait_for("typeof phone === 'object'")
    assert other.value("phone.named") != name
    other.navigate("about:blank#")
    page.call("Page.bringToFront")
    assert page.value("sessionStorage.page") == name


def test_a_camera_that_is_refused_has_words(run, open_page):
    other = open_page("about:blank#")
    other.call(
        "Page.addScriptToEvaluateOnNewDocument",
        source="navigator.mediaDevices.getUserMedia = () => "
        "Promise.reject(new DOMException('no', 'NotAllowedError'))",
    )
    other.navigate(run.url)
    other.wait_for("typeof phone === 'object' && find('headline').textContent.includes('refused')")
    assert "settings" in other.value("find('details').textContent")
    assert other.value("!find('start').hidden")
    other.call("Page.close")


def test_a_wrong_address_says_what_is_wrong(run, open_page):
    other = open_page(run.url[:-2] + "/")
    other.wait_for("document.body && document.body.textContent.includes('the whole address')")
    other.call("Page.close")


def test_the_run_ends_with_its_figures(page, run):
    page.value("find('end').click()")
    page.wait_for("find('toast').textContent === 'Once more to end the run'")
    page.value("find('end').click(), find('end').click()")  # the first may have come too late
    page.wait_for("find('headline').textContent === 'The run has ended'")
    out, _ = run.process.communicate(timeout=WAIT_S)
    summary = json.loads(out)
    assert all("gave no picture for a while" in each for each in summary["errors"])  # when cut off
    assert summary["phone"]["shown"] > 5
    assert 0 < summary["phone"]["p50_ms"] < 5000
