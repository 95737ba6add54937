// Something that hides what is behind it: nothing of it is seen but its depth.
uniform mat4 u_clip;
in vec3 in_position;

void main() {
    gl_Position = u_clip * vec4(in_position, 1.0);
}
