#version 330
uniform sampler2D u_image;
in vec2 v_uv;
out vec4 f_color;

void main() {
    f_color = vec4(texture(u_image, v_uv).rgb, 1.0);
}
