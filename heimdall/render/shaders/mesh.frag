#version 330
// Cloth times light. Gamma is taken as 2: a product and a square root instead of two powers.
uniform sampler2D u_cloth;
in vec2 v_uv;
in vec3 v_light;
in float v_wood;
out vec4 f_color;

void main() {
    // Every other tile is mirrored, so any picture makes a cloth without seams.
    vec3 cloth = texture(u_cloth, 1.0 - abs(1.0 - mod(v_uv, 2.0))).rgb;
    vec3 albedo = mix(cloth * cloth, vec3(0.10, 0.055, 0.03), v_wood);
    f_color = vec4(sqrt(albedo * v_light), 1.0);
}
