// Light is worked out per vertex, in linear space: the meshes are finely divided where they
// bend, and a software GPU has sixty times more pixels than vertices to shade.
uniform mat4 u_clip;
uniform vec3 u_key;   // towards the key light, model space
uniform vec3 u_eye;   // the camera, model space
uniform float u_tile; // metres a picture covers; a texture holds two by two, mirrored
in vec3 in_position;
in vec3 in_normal;
in vec2 in_uv;
in float in_openness;
out vec2 v_uv;
out vec3 v_light;

void main() {
    vec3 sky = vec3(0.66, 0.72, 0.80), ground = vec3(0.30, 0.26, 0.22);
    vec3 around = mix(ground, sky, in_normal.y * 0.5 + 0.5) * in_openness * 0.95;
    float facing = max((dot(in_normal, u_key) + 0.15) / 1.15, 0.0);
    vec3 key = vec3(1.10, 1.02, 0.90) * facing * smoothstep(0.05, 0.65, in_openness);
    // Cloth fibres catch light at grazing angles.
    vec3 view = normalize(u_eye - in_position);
    float grazing = pow(1.0 - clamp(dot(in_normal, view), 0.0, 1.0), 3.0);
    v_light = around + key + 0.30 * grazing * in_openness;
    v_uv = (in_uv / u_tile + 0.5) * 0.5;
    gl_Position = u_clip * vec4(in_position, 1.0);
}
