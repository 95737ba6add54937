// The shadow on the supporting plane, worked out per vertex of a fine grid: two soft
// rectangles, a dark one where the base nearly touches and a wide faint one around it.
uniform mat4 u_clip;
uniform vec2 u_half;    // half width and depth of the mesh's base, metres
uniform float u_margin; // how far the shadow reaches beyond it, metres
uniform float u_lift;   // metres above the plane: the shadow gets softer and paler
in vec2 in_side;        // which edge of the base
in vec2 in_spread;      // how far beyond that edge, in shares of the margin
out float v_dark;

float soft_box(vec2 place, vec2 half_size, float blur) {
    vec2 edge = clamp((half_size - abs(place)) / blur * 0.5 + 0.5, 0.0, 1.0);
    edge *= edge * (3.0 - 2.0 * edge);
    return edge.x * edge.y;
}

void main() {
    vec2 place = in_side * u_half + in_spread * u_margin;
    float contact = soft_box(place, u_half - 0.05, 0.15 + u_lift);
    float wide = soft_box(place - vec2(0.07, -0.02), u_half + 0.05, 0.42 + u_lift);
    v_dark = (0.50 * contact + 0.32 * wide) / (1.0 + 1.5 * u_lift);
    gl_Position = u_clip * vec4(place.x, 0.0, place.y, 1.0);
}
