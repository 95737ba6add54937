uniform sampler2D u_atlas;
noperspective in vec2 v_texel;
flat in vec4 v_color;
out vec4 f_color;

void main() {
    float coverage = texelFetch(u_atlas, ivec2(v_texel), 0).r;
    f_color = vec4(v_color.rgb, v_color.a * coverage);
}
