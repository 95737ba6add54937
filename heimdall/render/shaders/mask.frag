// A colour where the mask is likely, with an edge as soft as the mask's own.
uniform sampler2D u_mask;
uniform vec4 u_color;
noperspective in vec2 v_uv;
out vec4 f_color;

void main() {
    float inside = clamp((texture(u_mask, v_uv).r - 0.35) / 0.3, 0.0, 1.0);
    f_color = vec4(u_color.rgb, u_color.a * inside);
}
