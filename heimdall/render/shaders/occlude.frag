// The camera picture again, where the mask says that something real is in front.
uniform sampler2D u_picture;
uniform sampler2D u_mask;
noperspective in vec2 v_uv;
out vec4 f_color;

void main() {
    float inside = clamp((texture(u_mask, v_uv).r - 0.35) / 0.3, 0.0, 1.0);
    f_color = vec4(texture(u_picture, v_uv).rgb, inside);
}
