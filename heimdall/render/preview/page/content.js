"use strict";
// What an app has drawn, laid over the phone's own camera. It comes as a video of pictures twice as
// high: above the colours, premultiplied, below them the opacity as grey.

const CONTENT = (() => {
  const EVERYWHERE = `#version 300 es
    out vec2 at;
    void main() {
      vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
      at = vec2(corner.x, 1.0 - corner.y);
      gl_Position = vec4(2.0 * corner - 1.0, 0.0, 1.0);
    }`;
  // Encoders leave traces near 0 and 1; no colour is brighter than its opacity allows.
  const TOGETHER = `#version 300 es
    precision mediump float;
    uniform sampler2D both;
    in vec2 at;
    out vec4 colour;
    void main() {
      vec2 above = vec2(at.x, at.y * 0.5);
      float opacity = clamp((texture(both, above + vec2(0.0, 0.5)).g - 0.04) / 0.92, 0.0, 1.0);
      colour = vec4(min(texture(both, above).rgb, vec3(opacity)), opacity);
    }`;

  // A texture as it is.
  const COPY = `#version 300 es
    precision mediump float;
    uniform sampler2D picture;
    in vec2 at;
    out vec4 colour;
    void main() { colour = texture(picture, vec2(at.x, 1.0 - at.y)); }`;

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
      gl.texParameteri(gl.TEXTURE_2D, name, gl.NEAREST); // colours do not run into the opacity
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

    function fill(wanted, picture, box) {
      gl.disable(gl.BLEND);
      gl.useProgram(wanted);
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
      // A picture of the video: into the canvas, or a part (x, y, width, height) of what is bound.
      content(video, box = null) {
        if (!ready() || !video.videoWidth) return;
        if (!box) {
          sized(video.videoWidth, video.videoHeight / 2);
          gl.bindFramebuffer(gl.FRAMEBUFFER, null);
        }
        const again = box && own.shown === video.currentTime; // AR has more frames than the video
        own.shown = video.currentTime;
        gl.bindTexture(gl.TEXTURE_2D, own.video);
        if (!again) gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, video);
        fill(own.together, own.video, box || [0, 0, canvas.width, canvas.height]);
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
