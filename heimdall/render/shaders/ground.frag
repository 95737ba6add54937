// How much light the model's low, middle and high parts take from the plane.
uniform sampler2D u_picture;
uniform vec3 u_dark;
in vec2 v_low;
in vec2 v_middle;
in vec2 v_high;
out vec4 f_color;

void main() {
    float low = texture(u_picture, v_low).r, middle = texture(u_picture, v_middle).g;
    float high = texture(u_picture, v_high).b;
    vec3 open = 1.0 - u_dark * vec3(low, middle, high);
    f_color = vec4(0.02, 0.015, 0.01, 1.0 - open.r * open.g * open.b);
}
