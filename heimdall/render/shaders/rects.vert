// Plain rectangles on whole pixels, for the overlay: no edge to smooth, the cheapest fill.
uniform vec2 u_surface;  // pixels
in vec4 in_place;        // left, top, width, height in pixels
in vec4 in_color;
flat out vec4 v_color;   // premultiplied

void main() {
    vec2 pixel = in_place.xy + vec2(gl_VertexID & 1, (gl_VertexID >> 1) & 1) * in_place.zw;
    v_color = vec4(in_color.rgb * in_color.a, in_color.a);
    vec2 clip = pixel / u_surface * 2.0 - 1.0;
    gl_Position = vec4(clip.x, -clip.y, 0.0, 1.0);
}
