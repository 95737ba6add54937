in float v_dark;
out vec4 f_color;

void main() {
    f_color = vec4(0.02, 0.015, 0.01, v_dark);
}
