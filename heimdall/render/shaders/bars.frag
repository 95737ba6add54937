// Coverage of a pixel from its signed distance to the rounded bar.
noperspective in vec2 v_place;
flat in vec3 v_half;
flat in vec4 v_color;
out vec4 f_color;

void main() {
    vec2 beyond = abs(v_place) - v_half.xy;
    float outside = length(max(beyond, 0.0)) + min(max(beyond.x, beyond.y), 0.0) - v_half.z;
    f_color = vec4(v_color.rgb, v_color.a * clamp(0.5 - outside, 0.0, 1.0));
}
