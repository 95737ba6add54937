#version 330
// A colour where the mask is likely, with an edge as soft as the mask's own.
uniform sampler2D u_mask;
uniform vec4 u_color;
noperspective in vec2 v_uv;
out vec4 f_color;

void main() {
    float inside = smoothstep(0.35, 0.65, texture(u_mask, v_uv).r);
    f_color = vec4(u_color.rgb, u_color.a * inside);
}
