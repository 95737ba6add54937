// What a surface sends back of the room, with Karis' polynomial in place of the split sum's table.
uniform sampler2D u_room;   // what is all around, nine octahedral maps from smooth to rough

// Light from a direction, of any length, as a surface that rough sees it.
vec3 room(vec3 d, float rough) {
    d /= abs(d.x) + abs(d.y) + abs(d.z);
    vec2 folded = (1.0 - abs(d.zx)) * vec2(d.x < 0.0 ? -1.0 : 1.0, d.z < 0.0 ? -1.0 : 1.0);
    vec2 place = (d.y < 0.0 ? folded : d.xz) * (15.5 / 32.0) + 0.5;  // its edge texels are at 1
    place.y = (place.y + floor(rough * 8.0 + 0.5)) / 9.0;
    vec3 root = texture(u_room, place).rgb;
    return root * root * 4.0;  // it holds the root of a fourth
}

// How much comes back: x times what does straight on, and y.
vec2 share(float rough, float facing) {
    vec4 r = rough * vec4(-1.0, -0.0275, -0.572, 0.022) + vec4(1.0, 0.0425, 1.04, -0.04);
    float a = min(r.x * r.x, exp2(-9.28 * facing)) * r.x + r.y;
    return vec2(r.z - 1.04 * a, r.w + 1.04 * a);
}

// The main light's reflection: what does not change across it, and its shape, of the cosine
// between the reflected view and the light.
float gleam(float rough, float light, float view) {
    float a = rough * rough;
    float apart = max(0.5 + 0.5 * view, 0.01);  // the half vector's cosine, squared
    return a * a / (4.0 * apart * (rough + 0.5)) * clamp(light * 4.0, 0.0, 1.0);
}

float spot(float rough, float near) {
    float a = rough * rough;
    float d = (0.5 + 0.5 * near) * (a * a - 1.0) + 1.0;
    return 1.0 / max(d * d, 1e-4);
}
