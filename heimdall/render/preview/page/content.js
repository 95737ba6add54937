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

  function shader(gl, kind, source) {
    const made = gl.createShader(kind);
    gl.shaderSource(made, source);
    gl.compileShader(made);
    return made;
  }

  // Draws a picture of the video into a canvas; null without WebGL 2.
  function drawer(canvas) {
    const gl = canvas.getContext("webgl2", {premultipliedAlpha: true, antialias: false, depth: false});
    if (!gl) return null;
    let ready = false;

    function prepare() {
      const program = gl.createProgram();
      gl.attachShader(program, shader(gl, gl.VERTEX_SHADER, EVERYWHERE));
      gl.attachShader(program, shader(gl, gl.FRAGMENT_SHADER, TOGETHER));
      gl.linkProgram(program);
      gl.useProgram(program);
      gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
      for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) {
        gl.texParameteri(gl.TEXTURE_2D, name, gl.NEAREST); // colours do not run into the opacity
      }
      for (const name of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) {
        gl.texParameteri(gl.TEXTURE_2D, name, gl.CLAMP_TO_EDGE);
      }
      ready = true;
    }

    canvas.addEventListener("webglcontextlost", (event) => { event.preventDefault(); ready = false; });
    return (video) => {
      if (gl.isContextLost()) return;
      if (!ready) prepare();
      const wide = video.videoWidth, high = video.videoHeight / 2;
      if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
      gl.viewport(0, 0, wide, high);
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, video);
      gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
    };
  }

  return {drawer};
})();
