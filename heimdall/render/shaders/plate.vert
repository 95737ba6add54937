// A rectangle of whole pixels, by its corner number alone. Fan and smooth coordinates: llvmpipe
// has a faster rasteriser for those (see pixels.py).
uniform vec2 u_surface;  // pixels
uniform vec4 u_place;    // left, bottom, width, height in pixels, y up
uniform vec4 u_share;    // the same in the picture, in shares of it
out vec2 v_share;

void main() {
    vec2 corner = vec2(((gl_VertexID + 1) >> 1) & 1, gl_VertexID >> 1);  // of a fan, anticlockwise
    v_share = u_share.xy + corner * u_share.zw;
    vec2 pixel = u_place.xy + corner * u_place.zw;
    gl_Position = vec4(pixel / u_surface * 2.0 - 1.0, 0.0, 1.0);
}
