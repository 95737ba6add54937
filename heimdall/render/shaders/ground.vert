// A polygon on the plane that a model stands on, around its shadow.
uniform mat4 u_clip;
uniform vec4 u_extent;   // left, back, right, front of the shadow's picture, the model's space
uniform float u_height;  // of the plane
uniform vec2 u_away[3];  // how far the shadows of low, middle, high parts lie from them, in shares
in vec2 in_place;        // in shares of the extent
out vec2 v_low;
out vec2 v_middle;
out vec2 v_high;

void main() {
    vec2 place = mix(u_extent.xy, u_extent.zw, in_place);
    v_low = in_place - u_away[0];
    v_middle = in_place - u_away[1];
    v_high = in_place - u_away[2];
    gl_Position = u_clip * vec4(place.x, u_height, place.y, 1.0);
}
