"use strict";
// What an app has drawn, laid over the phone's own camera. It comes as a video of pictures twice as
// high: above the colours, premultiplied, below them the opacity as grey.

const CONTENT = (() => {
  const EVERYWHERE = `#version 300 es
    uniform mat4 turn; // from what is seen to what was seen as it was drawn
    out vec3 seen;
    void main() {
      vec2 place = 2.0 * vec2(gl_VertexID & 1, gl_VertexID >> 1) - 1.0;
      seen = (turn * vec4(place, 1.0, 0.0)).xyz;
      gl_Position = vec4(place, 0.0, 1.0);
    }`;
  // Encoders leave traces near 0 and 1; no colour is brighter than its opacity allows. Colours do
  // not run into the opacity: half a pixel away from it is near enough.
  const TOGETHER = `#version 300 es
    precision highp float;
    uniform sampler2D both;
    in vec3 seen;
    out vec4 colour;
    void main() {
      vec2 at = seen.xy / seen.z;
      colour = vec4(0.0);
      if (seen.z <= 0.0 || any(greaterThan(abs(at), vec2(1.0)))) return;
      float half_pixel = 0.5 / float(textureSize(both, 0).y);
      float down = clamp(0.25 - 0.25 * at.y, half_pixel, 0.5 - half_pixel);
      vec2 above = vec2(0.5 + 0.5 * at.x, down);
      float opacity = clamp((texture(both, above + vec2(0.0, 0.5)).g - 0.04) / 0.92, 0.0, 1.0);
      colour = vec4(min(texture(both, above).rgb, vec3(opacity)), opacity);
    }`;

  // A texture as it is.
  const COPY = `#version 300 es
    precision mediump float;
    uniform sampler2D picture;
    in vec3 seen;
    out vec4 colour;
    void main() { colour = texture(picture, 0.5 + 0.5 * seen.xy); }`;
  const AS_IT_IS = new Float32Array([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]);

  function program(gl, fragment) {
    const made = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, EVERYWHERE], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(made, shader);
    }
    gl.linkProgram(made);
    return made;
  }

  function texture(gl) {
    const made = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, made);
    for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) {
      gl.texParameteri(gl.TEXTURE_2D, name, gl.LINEAR);
    }
    for (const name of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) {
      gl.texParameteri(gl.TEXTURE_2D, name, gl.CLAMP_TO_EDGE);
    }
    return made;
  }

  // Draws into a canvas; null without WebGL 2.
  function drawer(canvas) {
    const gl = canvas.getContext("webgl2", {
      premultipliedAlpha: true, antialias: false, depth: false, preserveDrawingBuffer: true});
    if (!gl) return null;
    let own = null; // what a lost context takes with it
    canvas.addEventListener("webglcontextlost", (event) => { event.preventDefault(); own = null; });

    function fill(wanted, picture, box, turn = AS_IT_IS) {
      gl.disable(gl.BLEND);
      gl.useProgram(wanted);
      gl.uniformMatrix4fv(gl.getUniformLocation(wanted, "turn"), false, turn);
      gl.bindTexture(gl.TEXTURE_2D, picture);
      gl.viewport(...box);
      gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
    }

    function ready() {
      if (gl.isContextLost()) return false;
      own = own || {together: program(gl, TOGETHER), copy: program(gl, COPY), video: texture(gl)};
      return true;
    }

    function sized(wide, high) {
      if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
    }

    return {
      gl,
      // A picture of the video: into the canvas, or a part (x, y, width, height) of what is bound,
      // turned as XR.turn has it.
      content(video, box = null, turn = AS_IT_IS) {
        if (!ready() || !video.videoWidth) return;
        if (!box) {
          sized(video.videoWidth, video.videoHeight / 2);
          gl.bindFramebuffer(gl.FRAMEBUFFER, null);
        }
        const again = box && own.shown === video.currentTime; // AR has more frames than the video
        own.shown = video.currentTime;
        gl.bindTexture(gl.TEXTURE_2D, own.video);
        if (!again) gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, video);
        fill(own.together, own.video, box || [0, 0, canvas.width, canvas.height], turn);
      },
      // A texture into the canvas, of so many pixels.
      copy(picture, wide, high) {
        if (!ready()) return;
        sized(wide, high);
        gl.bindFramebuffer(gl.FRAMEBUFFER, null);
        fill(own.copy, picture, [0, 0, wide, high]);
      },
    };
  }

  return {drawer};
})();
