uniform vec2 u_surface;  // pixels
in vec4 in_place;        // left, top, width, height in pixels
in vec2 in_texel;        // top left corner in the atlas
in vec4 in_color;
noperspective out vec2 v_texel;
flat out vec4 v_color;

void main() {
    vec2 offset = vec2(gl_VertexID & 1, (gl_VertexID >> 1) & 1) * in_place.zw;
    v_texel = in_texel + offset;
    v_color = in_color;
    vec2 clip = (in_place.xy + offset) / u_surface * 2.0 - 1.0;
    gl_Position = vec4(clip.x, -clip.y, 0.0, 1.0);
}
