// A rectangle of whole pixels, by its corner number alone.
uniform vec2 u_surface;  // pixels
uniform vec4 u_place;    // left, bottom, width, height in pixels, y up
noperspective out vec2 v_share;

void main() {
    v_share = vec2(gl_VertexID & 1, (gl_VertexID >> 1) & 1);
    vec2 pixel = u_place.xy + v_share * u_place.zw;
    gl_Position = vec4(pixel / u_surface * 2.0 - 1.0, 0.0, 1.0);
}
