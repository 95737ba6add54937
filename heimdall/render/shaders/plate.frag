// A picture of the same size, pixel by pixel, its colours premultiplied.
uniform sampler2D u_picture;
in vec2 v_share;
out vec4 f_color;

void main() {
    f_color = texture(u_picture, v_share);
}
