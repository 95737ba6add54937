// Metallic-roughness, as glTF has it (appendix B): image-based light and one main light. Gamma is
// taken as 2. Three kinds: SOFT has its light from the vertices, MAPS works all of it out here,
// for it is textures that say how each point reflects, and the others look up what they reflect.
uniform float u_fade;
in vec4 v_colour;
out vec4 f_color;
#ifdef PICTURE
uniform sampler2D u_picture;
in vec2 v_uv;
#endif
#ifdef MASK
uniform float u_cutoff;
#endif
#ifdef SOFT
#ifdef PICTURE
in vec3 v_shine;
#endif
#else
uniform vec3 u_sheen;       // the strength of reflections, by colour
uniform vec3 u_key;
uniform vec3 u_key_colour;
uniform vec3 u_glow;
uniform float u_rough;
#include "reflection.glsl"
#endif
#ifdef MAPS
uniform float u_metal;
uniform vec3 u_sky[9];
in vec2 v_maps;
in vec3 v_tint;
in vec3 v_normal;
in vec3 v_view;
in vec3 v_sky;
#ifdef SURFACE
uniform sampler2D u_surface;
#endif
#ifdef SHADE
uniform sampler2D u_shade;
uniform float u_occlusion;
#endif
#ifdef GLOWING
uniform sampler2D u_glowing;
#endif
#ifdef BUMPS
uniform sampler2D u_bumps;
uniform float u_bump;       // scale of the normal map

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
#elif !defined(SOFT)
in vec3 v_mirrored;
in vec2 v_bright;
#ifdef METAL
in vec3 v_mirror;
#endif
#endif

void main() {
    vec4 seen = vec4(1.0);
#ifdef PICTURE
    seen = texture(u_picture, v_uv);
    seen.rgb *= seen.rgb;
#endif
    float alpha = 1.0;
#ifdef THROUGH
    alpha = seen.a * v_colour.a;
#endif
#ifdef MASK
    if (seen.a * v_colour.a < u_cutoff) discard;
#endif
#ifdef MAPS
    vec3 n = normalize(v_normal), v = normalize(v_view);
    n = gl_FrontFacing ? n : -n;
    float rough = u_rough, metal = u_metal, open = 1.0;
    vec3 tint = seen.rgb * v_tint, sky = v_sky, glow = u_glow;
#ifdef SURFACE
    vec4 surface = texture(u_surface, v_maps);
    rough = max(rough * surface.g, 0.04);
    metal *= surface.b;
#endif
#ifdef SHADE
    open = mix(1.0, texture(u_shade, v_maps).r, u_occlusion);
#endif
#ifdef BUMPS
    vec3 smooth_n = n;
    n = bumped(n);
    vec3 bend = n - smooth_n;
    sky = max(sky + u_sky[1] * bend.y + u_sky[2] * bend.z + u_sky[3] * bend.x, 0.0);
#endif
#ifdef GLOWING
    vec3 glowing = texture(u_glowing, v_maps).rgb;
    glow *= glowing * glowing;
#endif
    float lit = dot(n, u_key);
    vec3 light = sky * open + u_key_colour * max((lit + 0.15) / 1.15, 0.0);
    vec2 back = share(rough, clamp(dot(n, v), 0.0, 1.0));
    vec3 mirrored = reflect(-v, n);
    vec3 straight = mix(vec3(0.04), tint, metal);
    vec3 shine = room(mirrored, rough) * u_sheen * open * (straight * back.x + back.y);
    float more = gleam(rough, lit, dot(v, u_key)) * spot(rough, dot(mirrored, u_key));
    shine += straight * u_key_colour * min(more, 8.0);
    vec3 colour = tint * (1.0 - metal) * light + shine + glow;
#elif defined(SOFT)
    vec3 colour = seen.rgb * v_colour.rgb;
#ifdef PICTURE
    colour += v_shine;
#endif
#else
    float near = dot(v_mirrored, u_key) * inversesqrt(dot(v_mirrored, v_mirrored));
    vec3 shine = room(v_mirrored, u_rough) * u_sheen
        + u_key_colour * min(v_bright.y * spot(u_rough, near), 8.0);
    vec3 bright = vec3(v_bright.x);
#ifdef METAL
    bright += seen.rgb * v_mirror;
#endif
    vec3 colour = seen.rgb * v_colour.rgb + shine * bright + u_glow;
#endif
    f_color = vec4(sqrt(clamp(colour, 0.0, 1.0)), alpha * u_fade);
}
