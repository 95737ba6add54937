// A model's vertices, and the light on each: a software GPU has many more pixels than vertices to
// shade. Directions are in the light's space: y up, the size of the room.
// SOFT: reflections change so little between vertices that they are looked up there, too.
uniform mat4 u_clip;     // the model's space to clip space
uniform mat4 u_place;    // the part's space to the model's
uniform mat3 u_turn;     // directions of the model's space to the light's
uniform vec3 u_eye;      // from the model's origin to the camera
uniform float u_scale;   // the model's lengths to the room's
uniform vec3 u_sky[9];   // light from all around, spherical harmonics, as irradiance over pi
uniform vec3 u_key;      // towards the main light
uniform vec3 u_key_colour;
uniform vec3 u_sheen;    // the strength of reflections, by colour
uniform vec3 u_glow;
uniform vec4 u_base;     // the material's colour, linear
uniform float u_metal;
uniform float u_rough;
in vec3 in_position;
in vec3 in_normal;
in vec4 in_uv;
in vec4 in_colour;
#ifdef SKIN
uniform highp sampler2D u_joints;  // a matrix's first three rows are three texels
in vec4 in_joints;
in vec4 in_weights;
#endif
out vec4 v_colour;       // times the picture's: what comes back
#ifdef PICTURE
out vec2 v_uv;
#endif
#ifdef SOFT
uniform float u_lit;     // 0: it shines by itself
#ifdef PICTURE
out vec3 v_shine;        // what comes back besides
#endif
#elif defined(MAPS)
out vec2 v_maps;
out vec3 v_tint;         // times the picture's: the surface's own colour
out vec3 v_normal;
out vec3 v_view;
out vec3 v_sky;          // light alone
#else
out vec3 v_mirrored;     // the view's reflection, of any length: flat surfaces reflect exactly
out vec2 v_bright;       // how much of it comes back; of the main light's, more
#ifdef METAL
out vec3 v_mirror;       // times the picture's: how much of it comes back, by colour
#endif
#endif

vec3 around(vec3 n) {
    return u_sky[0] + u_sky[1] * n.y + u_sky[2] * n.z + u_sky[3] * n.x
        + u_sky[4] * (n.x * n.y) + u_sky[5] * (n.y * n.z) + u_sky[6] * (3.0 * n.z * n.z - 1.0)
        + u_sky[7] * (n.x * n.z) + u_sky[8] * (n.x * n.x - n.y * n.y);
}

// Where a matrix takes normals: its inverse transposed, of any length. It has no inverse where it
// makes something flat, but cofactors.
mat3 upright(mat3 m) {
    mat3 cofactors = mat3(cross(m[1], m[2]), cross(m[2], m[0]), cross(m[0], m[1]));
    return dot(m[0], cofactors[0]) < 0.0 ? -cofactors : cofactors;
}

#ifndef MAPS
#include "reflection.glsl"
#endif

void main() {
    mat4 place = u_place;
#ifdef SKIN
    vec4 x = vec4(0.0), y = vec4(0.0), z = vec4(0.0);
    for (int k = 0; k < 4; k++) {
        int joint = int(in_joints[k]) * 3;
        x += in_weights[k] * texelFetch(u_joints, ivec2(joint, 0), 0);
        y += in_weights[k] * texelFetch(u_joints, ivec2(joint + 1, 0), 0);
        z += in_weights[k] * texelFetch(u_joints, ivec2(joint + 2, 0), 0);
    }
    place = transpose(mat4(x, y, z, vec4(0.0, 0.0, 0.0, 1.0)));
#endif
    vec4 position = place * vec4(in_position, 1.0);
    vec3 normal = normalize(u_turn * (upright(mat3(place)) * in_normal));
    vec3 view = u_eye - u_turn * position.xyz * u_scale;
    vec3 light = max(around(normal), 0.0);
    vec4 own = u_base * in_colour;
#ifdef PICTURE
    v_uv = in_uv.xy;
#endif
#ifdef MAPS
    v_colour = own;
    v_maps = in_uv.zw;
    v_tint = own.rgb;
    v_normal = normal;
    v_view = view;
    v_sky = light;
#else
    float lit = dot(normal, u_key);
    light += u_key_colour * max((lit + 0.15) / 1.15, 0.0);
    vec3 towards = normalize(view);
    vec2 back = share(u_rough, abs(dot(normal, towards)));
    vec3 mirrored = reflect(-view, normal);
    vec3 mirror = own.rgb * (u_metal * back.x);
    float bright = 0.04 * (1.0 - u_metal) * back.x + back.y;
    float straight = mix(0.04, 1.0, u_metal);  // of the main light: all of this share
    float more = gleam(u_rough, lit, dot(towards, u_key))
        * straight / max(straight * back.x + back.y, 0.01);
#ifdef SOFT
    float near = dot(mirrored, u_key) * inversesqrt(dot(mirrored, mirrored));
    vec3 seen = room(mirrored, u_rough) * u_sheen
        + u_key_colour * min(more * spot(u_rough, near), 8.0);
    vec3 colour = own.rgb * (1.0 - u_metal) * light + mirror * seen;
    vec3 shine = seen * bright * u_lit + u_glow;
    v_colour = vec4(mix(own.rgb, colour, u_lit), own.a);
#ifdef PICTURE
    v_shine = shine;
#else
    v_colour.rgb += shine;
#endif
#else
    v_colour = vec4(own.rgb * (1.0 - u_metal) * light, own.a);
    v_mirrored = mirrored;
    v_bright = vec2(bright, more);
#ifdef METAL
    v_mirror = mirror;
#endif
#endif
#endif
    gl_Position = u_clip * position;
    gl_PointSize = 4.0;
}
