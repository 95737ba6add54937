// The plane that a model stands on, as far as its shadow reaches.
uniform mat4 u_clip;
uniform vec4 u_extent;   // left, back, right, front, the model's space
uniform float u_height;  // of the plane
uniform vec2 u_away[3];  // how far the shadows of low, middle, high parts lie from them, in shares
out vec2 v_low;
out vec2 v_middle;
out vec2 v_high;

void main() {
    vec2 corner = vec2(((gl_VertexID + 1) >> 1) & 1, gl_VertexID >> 1);  // of a fan
    vec2 place = mix(u_extent.xy, u_extent.zw, corner);
    v_low = corner - u_away[0];
    v_middle = corner - u_away[1];
    v_high = corner - u_away[2];
    gl_Position = u_clip * vec4(place.x, u_height, place.y, 1.0);
}
