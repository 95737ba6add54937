// An image on four corners: the homography's w makes the interpolation perspective.
uniform mat3 u_homography;  // unit square to clip space
out vec2 v_uv;

void main() {
    v_uv = vec2(((gl_VertexID + 1) >> 1) & 1, gl_VertexID >> 1);  // a fan
    vec3 place = u_homography * vec3(v_uv, 1.0);
    gl_Position = vec4(place.xy, 0.0, place.z);
}
