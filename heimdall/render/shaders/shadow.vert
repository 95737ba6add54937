#version 330
// The patch of supporting plane under a mesh.
uniform mat4 u_clip;
uniform vec2 u_half;    // half width and depth of the mesh's base, metres
uniform float u_margin; // metres
out vec2 v_place;       // metres from the base centre

void main() {
    vec2 side = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0 - 1.0;
    v_place = side * (u_half + u_margin);
    gl_Position = u_clip * vec4(v_place.x, 0.0, v_place.y, 1.0);
}
