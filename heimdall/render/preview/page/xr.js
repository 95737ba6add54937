"use strict";
// Augmented reality by WebXR (ARCore in Chrome on Android): the phone's own pose, planes and
// camera, for the run; and what the run draws, in the picture that the browser shows.

const XR = (() => {
  const WIDE = 640; // of the camera's picture for the run, its longer side
  const LEVEL = 0.95, SAME_M = 0.08, AROUND_M = 0.25; // of hits that make a plane
  const MOST = 64; // planes, and corners of one
  const LACKING_MS = 3000; // without a picture of the camera: another way is taken
  const PLANES_MS = 500, AGAIN_MS = 2000; // between two looks, and until the same is told again

  async function supported() {
    try {
      return Boolean(navigator.xr) && await navigator.xr.isSessionSupported("immersive-ar");
    } catch {
      return false;
    }
  }

  const place = ({position, orientation}) => ({
    at: [position.x, position.y, position.z],
    turn: [orientation.x, orientation.y, orientation.z, orientation.w],
  });

  // Focal lengths and centre in shares of the picture, y down, of a projection from OpenGL's axes.
  const lens = (matrix) => [matrix[0] / 2, matrix[5] / 2, (1 - matrix[8]) / 2, (1 + matrix[9]) / 2];

  const UP_Y = 2 / 3 * 0.488603, ALL = 0.282095; // of spherical harmonics, onto what faces up

  // The light as the browser estimates it; null: not yet.
  function light(frame, probe, space) {
    const found = frame.getLightEstimate(probe), pose = frame.getPose(probe.probeSpace, space);
    if (!found || !pose) return null;
    const {primaryLightDirection: towards, primaryLightIntensity: main} = found;
    const sky = found.sphericalHarmonicsCoefficients;
    const turned = new DOMMatrix(pose.transform.matrix).transformPoint(
      new DOMPoint(towards.x, towards.y, towards.z, 0));
    const few = (number) => Math.round(1000 * number) / 1000;
    return {
      type: "light",
      towards: [turned.x, turned.y, turned.z].map(few),
      main: [main.x, main.y, main.z].map((each) => few(Math.max(each / Math.PI, 0))),
      around: [0, 1, 2].map((each) => few(Math.max(ALL * sky[each] + UP_Y * sky[each + 3], 0))),
    };
  }

  // What leads from a place that is seen now to where it was in the view that content was drawn for,
  // as far as the phone has turned since: both in OpenGL's -1 to 1, homogeneous.
  function turn(projection, drawn, now) {
    const lens = new DOMMatrix([
      projection[0], 0, 0, 0, 0, projection[5], 0, 0, projection[8], projection[9], -1, 0, 0, 0, 0, 1]);
    const turned = (matrix) => {
      const alone = new DOMMatrix(matrix);
      alone.m41 = alone.m42 = alone.m43 = 0;
      return alone;
    };
    return lens.multiply(turned(drawn).inverse()).multiply(turned(now)).multiply(lens.inverse()).toFloat32Array();
  }

  // The planes that the browser finds; where it finds none, what rays from the camera's middle have
  // hit: a level place is one plane with those as high.
  function surfaces() {
    const numbers = new WeakMap(), levels = [];
    let count = 0;

    const number = (plane) => {
      if (!numbers.has(plane)) numbers.set(plane, count++);
      return numbers.get(plane);
    };

    function detected(frame, space) {
      const found = [];
      for (const plane of frame.detectedPlanes) {
        const pose = frame.getPose(plane.planeSpace, space);
        if (!pose || plane.polygon.length < 3 || found.length === MOST) continue;
        const outline = plane.polygon.slice(0, MOST).map(({x, z}) => [x, z]);
        const kind = ["horizontal", "vertical"].includes(plane.orientation) ? plane.orientation : "unknown";
        found.push({id: number(plane), place: place(pose.transform), outline, kind});
      }
      return found;
    }

    function hit(pose) {
      const {position, matrix} = pose.transform;
      if (matrix[5] < LEVEL) return; // its y, the normal, does not look up
      let level = levels.find((each) => Math.abs(each.y - position.y) < SAME_M);
      if (!level) {
        if (levels.length === 16) return;
        level = {id: count++, y: position.y, left: Infinity, right: -Infinity, far: Infinity, near: -Infinity};
        levels.push(level);
      }
      level.left = Math.min(level.left, position.x - AROUND_M);
      level.right = Math.max(level.right, position.x + AROUND_M);
      level.far = Math.min(level.far, position.z - AROUND_M);
      level.near = Math.max(level.near, position.z + AROUND_M);
    }

    const told = () => levels.map(({id, y, left, right, far, near}) => ({
      id, kind: "horizontal", place: {at: [0, y, 0], turn: [0, 0, 0, 1]},
      outline: [[left, far], [left, near], [right, near], [right, far]]}));

    return (frame, space, source) => {
      if (frame.detectedPlanes && frame.detectedPlanes.size) return detected(frame, space);
      const results = source ? frame.getHitTestResults(source) : [];
      const pose = results.length ? results[0].getPose(space) : null;
      if (pose) hit(pose);
      return told();
    };
  }

  // Begins; `told` hears of each picture, of planes and of light, as the run is told; `ended` of the end;
  // `drawnFor` knows the phone's matrix when the picture was taken that content was drawn for, or
  // null. Gives the camera's pictures as a stream. Raises Error with words for the user.
  async function start(drawer, video, told, ended, drawnFor) {
    const {gl} = drawer;
    const session = await navigator.xr.requestSession("immersive-ar", {
      requiredFeatures: ["local"],
      optionalFeatures: ["camera-access", "plane-detection", "hit-test", "light-estimation", "dom-overlay"],
      domOverlay: {root: document.body},
    });
    try {
      // Chrome 147 to 149 on Android end the page in another order (three.js, issue 33404). This is the
      // one of Chromium's own sample: the binding first, then the layer; in a frame, the layer's
      // framebuffer is bound and cleared before the camera's picture is asked for. No layers of
      // WebXR Layers are asked for either.
      await gl.makeXRCompatible();
      const binding = window.XRWebGLBinding ? new XRWebGLBinding(session, gl) : null;
      const layer = new XRWebGLLayer(session, gl, {antialias: false, depth: false});
      await session.updateRenderState({baseLayer: layer});
      const space = await session.requestReferenceSpace("local");
      const source = await hits(session), probe = await lights(session);
      const sheet = document.createElement("canvas"), paint = sheet.getContext("2d", {alpha: false});
      const stream = sheet.captureStream(0), look = surfaces();
      const [track] = stream.getVideoTracks();
      let planes = "[]", planesAt = 0, toldAt = 0, seen = false, lacked = 0, why = "", done = false;
      const lost = () => give("The phone's graphics were reset");
      gl.canvas.addEventListener("webglcontextlost", lost);

      function give(reason) { // the session up: the page goes on with the camera alone
        if (done) return;
        done = true;
        why = `${reason}: going on without AR.`;
        session.end();
      }

      // The camera's picture as a texture; null where the browser does not give it.
      function cameraImage(camera) {
        try {
          return binding.getCameraImage(camera);
        } catch (error) {
          console.warn("the camera's picture:", error);
          return null;
        }
      }

      function onFrame(now, frame) {
        if (done) return;
        session.requestAnimationFrame(onFrame);
        lacked = lacked || now;
        const pose = frame.getViewerPose(space), view = pose && pose.views[0];
        gl.bindFramebuffer(gl.FRAMEBUFFER, layer.framebuffer);
        gl.clearColor(0, 0, 0, 0);
        gl.clear(gl.COLOR_BUFFER_BIT);
        const image = view && view.camera && binding ? cameraImage(view.camera) : null;
        if (image) {
          const {width, height} = view.camera, scale = Math.min(1, WIDE / Math.max(width, height));
          const even = (side) => 2 * Math.round(side * scale / 2);
          const size = [even(width), even(height)];
          if (sheet.width !== size[0] || sheet.height !== size[1]) [sheet.width, sheet.height] = size;
          drawer.copy(image, ...size);
          paint.drawImage(gl.canvas, 0, 0); // what is drawn next must not get into it
          track.requestFrame();
          seen = true;
          lacked = now;
          const known = pose.emulatedPosition ? null : place(view.transform);
          const viewed = {place: known, lens: lens(view.projectionMatrix)};
          told({type: "picture", now, viewed, matrix: known && view.transform.matrix});
        } else if (!pose && seen) {
          lacked = now; // it has lost its place
        } else if (now - lacked > LACKING_MS) {
          give(seen ? "This browser's AR gives no pictures any more" : "This browser's AR gives pages no pictures");
          return;
        }
        gl.bindFramebuffer(gl.FRAMEBUFFER, layer.framebuffer);
        if (view) {
          const {x, y, width, height} = layer.getViewport(view);
          const before = drawnFor(), {matrix} = view.transform;
          const turned = before ? turn(view.projectionMatrix, before, matrix) : undefined;
          drawer.content(video, [x, y, width, height], turned);
        }
        if (now - planesAt < PLANES_MS) return;
        planesAt = now;
        const lit = probe && light(frame, probe, space);
        if (lit) told(lit);
        const found = look(frame, space, source), text = JSON.stringify(found);
        if (text === planes && now - toldAt < AGAIN_MS) return;
        told({type: "surfaces", planes: found});
        [planes, toldAt] = [text, now];
      }

      session.addEventListener("end", () => {
        done = true;
        gl.canvas.removeEventListener("webglcontextlost", lost);
        track.stop();
        ended(why);
      });
      session.requestAnimationFrame(onFrame);
      return {stream, end: () => session.end()};
    } catch (error) {
      session.end();
      throw error;
    }
  }

  async function lights(session) {
    try {
      return await session.requestLightProbe();
    } catch {
      return null; // it tells of none
    }
  }

  async function hits(session) {
    try {
      const viewer = await session.requestReferenceSpace("viewer");
      return await session.requestHitTestSource({space: viewer});
    } catch {
      return null; // it has none
    }
  }

  return {supported, start, turn};
})();
