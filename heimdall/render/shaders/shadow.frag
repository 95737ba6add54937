#version 330
// Two soft rectangles: a dark one where the base nearly touches, a wide faint one around it.
uniform vec2 u_half;
uniform float u_lift;  // metres above the plane: the shadow gets softer and paler
in vec2 v_place;
out vec4 f_color;

float soft_box(vec2 place, vec2 half_size, float blur) {
    vec2 edge = clamp((half_size - abs(place)) / blur * 0.5 + 0.5, 0.0, 1.0);
    edge *= edge * (3.0 - 2.0 * edge);
    return edge.x * edge.y;
}

void main() {
    float contact = soft_box(v_place, u_half - 0.06, 0.13 + u_lift);
    float wide = soft_box(v_place - vec2(0.07, -0.02), u_half + 0.05, 0.42 + u_lift);
    float dark = (0.48 * contact + 0.30 * wide) / (1.0 + 1.5 * u_lift);
    f_color = vec4(0.02, 0.015, 0.01, dark);
}
