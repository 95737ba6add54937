// Metallic-roughness, as glTF has it (appendix B): the split sum of image-based light with
// Karis' polynomial instead of a table, and one main light. Gamma is taken as 2.
uniform sampler2D u_picture;
uniform float u_fade;
uniform float u_cutoff;
uniform vec3 u_glow;
in vec4 v_colour;
in vec2 v_uv;
out vec4 f_color;
#ifndef MATTE
uniform sampler2D u_room;   // what is all around, nine octahedral maps from smooth to rough
uniform vec3 u_sheen;       // its strength, by colour
uniform vec3 u_key;
uniform vec3 u_key_colour;
uniform float u_rough;
uniform float u_metal;
uniform float u_lit;
in vec3 v_tint;
in vec3 v_normal;
in vec3 v_view;

vec3 room(vec3 d, float rough) {
    d /= abs(d.x) + abs(d.y) + abs(d.z);
    vec2 folded = (1.0 - abs(d.zx)) * vec2(d.x < 0.0 ? -1.0 : 1.0, d.z < 0.0 ? -1.0 : 1.0);
    vec2 place = d.y < 0.0 ? folded : d.xz;
    place = clamp(place * 0.5 + 0.5, 0.5 / 32.0, 31.5 / 32.0);
    place.y = (place.y + floor(rough * 8.0 + 0.5)) / 9.0;
    vec3 root = texture(u_room, place).rgb;
    return root * root * 4.0;  // it holds the root of a fourth
}
#endif
#ifdef MAPS
uniform sampler2D u_surface;
uniform sampler2D u_bumps;
uniform sampler2D u_shade;
uniform sampler2D u_glowing;
uniform float u_bump;       // scale of the normal map, 0: none
uniform float u_occlusion;
in vec2 v_maps;
in vec3 v_sky;
uniform vec3 u_sky[9];

// The normal map's normal, in a frame from how position and coordinates change across pixels.
vec3 bumped(vec3 n) {
    vec3 dx = dFdx(v_view), dy = dFdy(v_view);
    vec2 du = dFdx(v_maps), dv = dFdy(v_maps);
    vec3 across = cross(dy, n), down = cross(n, dx);
    vec3 t = across * du.x + down * dv.x, b = across * du.y + down * dv.y;
    float size = inversesqrt(max(max(dot(t, t), dot(b, b)), 1e-20));
    vec3 map = texture(u_bumps, v_maps).xyz * 2.0 - 1.0;
    map.xy *= u_bump;
    return normalize(-t * size * map.x + b * size * map.y + n * max(map.z, 0.05));
}
#endif

void main() {
    vec4 seen = texture(u_picture, v_uv);
    seen.rgb *= seen.rgb;
    float alpha = seen.a * v_colour.a;
#ifdef MASK
    if (alpha < u_cutoff) discard;
    alpha = 1.0;
#endif
    vec3 colour = seen.rgb * v_colour.rgb + u_glow;
#ifndef MATTE
    vec3 n = normalize(v_normal), v = normalize(v_view);
    n = gl_FrontFacing ? n : -n;
    float rough = u_rough, metal = u_metal, open = 1.0;
    vec3 tint = seen.rgb * v_tint;
#ifdef MAPS
    vec4 surface = texture(u_surface, v_maps);
    rough = max(rough * surface.g, 0.04);
    metal *= surface.b;
    open = mix(1.0, texture(u_shade, v_maps).r, u_occlusion);
    vec3 smooth_n = n;
    n = bumped(n);
    vec3 bend = n - smooth_n;
    vec3 sky = max(v_sky + u_sky[1] * bend.y + u_sky[2] * bend.z + u_sky[3] * bend.x, 0.0);
    vec3 light = sky * open + u_key_colour * max((dot(n, u_key) + 0.15) / 1.15, 0.0);
    vec3 glowing = texture(u_glowing, v_maps).rgb;
    vec3 glow = u_glow * glowing * glowing;
    colour = mix(tint, tint * (1.0 - metal) * light, u_lit) + glow;
#endif
    float facing = clamp(dot(n, v), 0.0, 1.0);
    vec3 f0 = mix(vec3(0.04), tint, metal);
    vec4 r = rough * vec4(-1.0, -0.0275, -0.572, 0.022) + vec4(1.0, 0.0425, 1.04, -0.04);
    float a = min(r.x * r.x, exp2(-9.28 * facing)) * r.x + r.y;
    vec3 bright = f0 * (r.z - 1.04 * a) + (r.w + 1.04 * a);
    vec3 shine = room(reflect(-v, n), rough) * u_sheen * bright * open;
    vec3 h = normalize(v + u_key);
    float nh = clamp(dot(n, h), 0.0, 1.0), lh = clamp(dot(u_key, h), 0.1, 1.0);
    float a2 = rough * rough * rough * rough;
    float d = nh * nh * (a2 - 1.0) + 1.0;
    float spot = a2 / max(4.0 * d * d * lh * lh * (rough + 0.5), 1e-4);
    shine += f0 * u_key_colour * min(spot, 8.0) * clamp(dot(n, u_key) * 4.0, 0.0, 1.0);
    colour += shine * u_lit;
#endif
    f_color = vec4(sqrt(clamp(colour, 0.0, 1.0)), alpha * u_fade);
}
