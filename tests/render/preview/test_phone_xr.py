"""Augmented reality by WebXR, in a real browser with an emulated device (iwer)."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import tarfile
import time
from typing import Any

import cv2
import numpy as np
import pytest

from tests.browser import WAIT_S, as_phone, browser, installed
from tests.served import ServedApp, on_a_phone

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(installed() is None, reason="needs Chromium"),
    pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm, which brings iwer"),
]
PACKAGE = "iwer@2.5.0"
AT = 0.3, 1.5, 0.2  # of the device, metres, y up
HALF = math.sqrt(0.5)
HEAD_M = 1.6  # where iwer begins

APP = """
import json
from heimdall import App, World

class Mine(App):
    title = "A title"
    size = (640, 480)
    world = World()

    def draw(self, scene):
        world, pose = self.world, self.world.pose
        said = {"source": world.scale_source, "state": world.state, "reason": world.reason}
        if pose is not None:
            camera = world.camera
            said["at"] = pose.position.tolist()
            said["lens"] = [camera.fx / camera.width, camera.fy / camera.height]
            said["size"] = list(camera.size)
            light = camera.device.light if camera.device else None
            lit = light and (light.towards, light.main, light.around)
            said["light"] = lit and [each.tolist() for each in lit]
        said["planes"] = [[each.kind, *each.size, each.pose.translation[2]] for each in world.found]
        hit = scene.hit(320, 240)
        said["hit"] = hit.plane.name if hit else None
        scene.text("content", (200, 200))
        with open(LOG, "a") as log:
            log.write(json.dumps(said) + "\\n")
"""
# A phone instead of iwer's headset, with a floor; and the camera's pictures, which iwer lacks: red.
DEVICE = """
(() => {
  const {XRDevice, metaQuest3, NativePlane, XRRigidTransform, XRView, XRWebGLBinding} = IWER;
  const device = new XRDevice({
    ...metaQuest3, name: "a phone", userAgent: navigator.userAgent,
    supportedFeatures: ["viewer", "local", "plane-detection", "hit-test", "dom-overlay"],
  }, {stereoEnabled: false, ipd: 0});
  device.installRuntime({forceInstall: true});
  device.position.set(AT);
  device.quaternion.set(-0.3826834, 0, 0, 0.9238795); // down by 45 degrees
  device.installSEM(class {
    constructor() {
      this.environmentCanvas = document.createElement("canvas");
      const corners = [[-2, -3], [-2, 3], [2, 3], [2, -3]].map(([x, z]) => new DOMPoint(x, 0, z));
      const floor = new NativePlane(new XRRigidTransform({x: 0, y: 0.1, z: -1}), corners, "floor");
      this.trackedPlanes = new Set([floor]);
      this.trackedMeshes = new Set();
    }
    render() {}
    computeHitTestResults() { return []; }
  });
  Object.defineProperty(XRView.prototype, "camera", {
    configurable: true, get: () => ({width: 1280, height: 960})});
  const {XRSession, XRFrame} = IWER; // light, which it lacks, too
  XRSession.prototype.requestLightProbe = async function () {
    return {probeSpace: await this.requestReferenceSpace("local")};
  };
  XRFrame.prototype.getLightEstimate = () => ({
    primaryLightDirection: {x: 1, y: 1, z: 0}, primaryLightIntensity: {x: Math.PI, y: 1, z: 1},
    sphericalHarmonicsCoefficients: Float32Array.from({length: 27}, (_, at) => at < 3 ? 1 : 0),
  });
  XRWebGLBinding.prototype.getCameraImage = () => {
    const gl = document.getElementById("content").getContext("webgl2");
    const texture = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, texture);
    const red = new Uint8Array([230, 20, 20, 255]);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 1, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, red);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    return texture;
  };
  window.emulated = device;
})();
"""


def tells(run: ServedApp, **wanted: Any) -> dict[str, Any]:
    """What the app says once that is so."""
    end = time.monotonic() + WAIT_S
    while True:
        lines = run.log.read_text().splitlines()[-1:]
        last = json.loads(lines[0]) if lines and lines[0].endswith("}") else {}
        if wanted.items() <= last.items():
            return last
        assert time.monotonic() < end, f"never {wanted}: {last}"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def iwer(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("iwer")
    command = [str(shutil.which("npm")), "pack", PACKAGE]
    packed = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    if packed.returncode:
        pytest.skip(f"npm cannot bring {PACKAGE}")
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        member = archive.extractfile("package/build/iwer.min.js")
        assert member is not None
        return member.read().decode()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with on_a_phone(tmp_path_factory.mktemp("run"), APP, "overlay") as started:
        yield started


@pytest.fixture(scope="module")
def page(run, iwer, tmp_path_factory):
    clip = tmp_path_factory.mktemp("clip") / "camera.mjpeg"
    green = np.full((480, 640, 3), (20, 230, 20), np.uint8)
    clip.write_bytes(30 * cv2.imencode(".jpg", green)[1].tobytes())
    with browser(tmp_path_factory.mktemp("browser"), (412, 915), as_phone(clip)) as open_page:
        page = open_page("about:blank#")
        at = ", ".join(map(str, AT))
        source = f"{iwer}\n{DEVICE.replace('AT', at)}"
        page.call("Page.addScriptToEvaluateOnNewDocument", source=source)
        page.navigate(run.url)
        page.wait_for("typeof phone === 'object' && !find('start-ar').hidden")
        page.value("find('start-ar').click()")
        yield page


def test_the_world_is_the_devices(page, run):
    said = tells(run, source="device", state="tracked")
    assert said["at"] == pytest.approx((0.3, -0.2, 1.5 - HEAD_M), abs=0.01)  # z up
    assert said["size"] == [640, 480]
    assert said["lens"] == pytest.approx((0.375, 0.5), abs=1e-3)  # iwer sees 90 degrees, upwards


def test_its_planes_are_found_and_met(run, page):
    said = tells(run, source="device", hit="plane 0")
    (plane,) = said["planes"]
    assert plane == ["horizontal", pytest.approx(4), pytest.approx(6), pytest.approx(0.1 - HEAD_M)]


def test_it_moves_with_the_device(page, run):
    page.value("emulated.position.set(1.3, 1.5, 0.2)")
    end = time.monotonic() + WAIT_S
    while abs(tells(run, state="tracked")["at"][0] - 1.3) > 0.02:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_its_light_is_known(page, run):
    end = time.monotonic() + WAIT_S
    while not (light := tells(run, state="tracked").get("light")):
        assert time.monotonic() < end
    assert light[0] == pytest.approx([HALF, HALF, 0], abs=1e-3)
    assert light[1] == pytest.approx([1, 0.318, 0.318], abs=1e-3)
    assert light[2] == pytest.approx([0.282] * 3, abs=1e-3)


def test_content_is_turned_as_far_as_the_device_has(page):
    """The place that is 10 degrees to the right of the middle now was in the middle before."""
    lens = "[1.2, 0, 0, 0, 0, 1.6, 0, 0, 0.1, 0, -1, -1, 0, 0, -0.2, 0]"
    before = "new DOMMatrix([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 5, 6, 7, 1])"
    now = f"{before}.rotateAxisAngle(0, 1, 0, 10).toFloat32Array()"  # to the left
    place = f"new DOMMatrix([...XR.turn({lens}, {before}.toFloat32Array(), {now})])"
    x = 1.2 * math.tan(math.radians(10)) - 0.1
    point = page.value(
        f"(({{x, y, z}}) => [x, y, z])({place}.transformPoint(new DOMPoint({x}, 0, 1, 0)))"
    )
    assert np.array(point[:2]) / point[2] == pytest.approx((-0.1, 0), abs=1e-4)
    assert point[2] > 0


def test_what_a_frame_was_drawn_for_is_known_while_the_device_turns(page):
    page.value(
        "window.turning = setInterval(() => emulated.quaternion.set("
        "-0.3826834, 0.2 * Math.sin(performance.now() / 300), 0, 0.9), 10)"
    )
    page.wait_for("phone.drawnFor() !== null")
    page.value("clearInterval(turning)")
    page.value("emulated.quaternion.set(-0.3826834, 0, 0, 0.9238795)")


def test_content_comes_back(page):
    page.wait_for("phone.flows() && video.videoWidth === 640 && video.videoHeight === 960")


def test_after_its_end_it_may_begin_again(page, run):
    page.value("phone.xr().end()")
    page.wait_for("find('details').textContent.includes('AR has ended')")
    page.wait_for("!find('start-ar').hidden")
    page.value("find('start-ar').click()")
    page.wait_for("find('card').hidden")
    tells(run, source="device", state="tracked")


# Notes in which order what Chrome is particular about is done.
NOTED = """
(() => {
  window.order = [];
  const note = (name) => window.order.length < 60 && window.order.push(name);
  const gl = document.getElementById("content").getContext("webgl2");
  for (const name of ["bindFramebuffer", "clear"]) {
    const own = gl[name].bind(gl);
    gl[name] = (...given) => { note(name); own(...given); };
  }
  for (const name of ["XRWebGLBinding", "XRWebGLLayer"]) {
    const Own = window[name];
    window[name] = class extends Own { constructor(...given) { super(...given); note(name); } };
  }
  const image = IWER.XRWebGLBinding.prototype.getCameraImage;
  IWER.XRWebGLBinding.prototype.getCameraImage = (camera) => {
    note("image");
    return image(camera);
  };
})()
"""


def again(page, run, script: str = "") -> None:
    """Load the page once more, run a script in it, and begin."""
    page.navigate("about:blank#")
    page.navigate(run.url)
    page.wait_for("typeof phone === 'object' && !find('start-ar').hidden")
    if script:
        page.value(script)
    page.value("find('start-ar').click()")


def test_the_cameras_picture_is_asked_for_as_chrome_wants_it(page, run):
    """Another order ended pages in Chrome 147 and later (three.js, issue 33404)."""
    again(page, run, NOTED)
    page.wait_for("order.filter((each) => each === 'image').length > 2")
    order = page.value("order")
    assert order.index("XRWebGLBinding") < order.index("XRWebGLLayer")
    assert "image" not in order[: order.index("XRWebGLLayer")]
    at = order.index("image")
    assert order[at - 2 : at] == ["bindFramebuffer", "clear"]


LACKS = {
    "throws": "IWER.XRWebGLBinding.prototype.getCameraImage = () => { throw new Error('no'); }",
    "null": "IWER.XRWebGLBinding.prototype.getCameraImage = () => null",
    "no camera": "Object.defineProperty(IWER.XRView.prototype, 'camera', {get: () => null})",
    "lost": "find('content').getContext('webgl2').getExtension('WEBGL_lose_context').loseContext()",
}


@pytest.mark.parametrize(
    ("lack", "begun"), [*((each, True) for each in LACKS), ("throws", False), ("no camera", False)]
)
def test_without_the_cameras_picture_the_page_goes_on_by_the_camera(page, run, lack, begun):
    again(page, run, "" if begun else f"void ({LACKS[lack]})")
    page.wait_for("phone.xr() !== null")
    if begun:
        tells(run, source="device", state="tracked")
        page.value(f"void ({LACKS[lack]})")
    page.wait_for("document.body.textContent.includes('going on without AR')")
    page.wait_for("phone.xr() === null && !document.body.classList.contains('in-ar')")
    page.wait_for("find('camera').srcObject && !find('camera').hidden && phone.flows()")
