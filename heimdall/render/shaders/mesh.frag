// Cloth times light. Gamma is taken as 2: a product and a square root instead of two powers.
uniform sampler2D u_cloth;
in vec2 v_uv;
in vec3 v_light;
out vec4 f_color;

void main() {
    vec3 cloth = texture(u_cloth, v_uv).rgb;
    f_color = vec4(sqrt(cloth * cloth * v_light), 1.0);
}
