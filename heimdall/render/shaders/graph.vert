#version 330
// One column a frame: its height is the interval, half height being the target.
uniform vec2 u_surface;  // pixels
uniform vec4 u_place;    // left, top, column width, height in pixels
uniform int u_first;     // column of the oldest frame
in float in_height;      // 0..1 of the graph
flat out vec3 v_color;

void main() {
    float column = float(u_first + gl_InstanceID);
    vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
    float tall = max(1.0, floor(in_height * u_place.w + 0.5));
    vec2 pixel = vec2(u_place.x + (column + corner.x) * u_place.z,
                      u_place.y + u_place.w - tall * corner.y);
    v_color = in_height < 0.55 ? vec3(0.20, 0.72, 0.46)
            : in_height < 0.75 ? vec3(0.98, 0.75, 0.14) : vec3(0.97, 0.44, 0.44);
    vec2 clip = pixel / u_surface * 2.0 - 1.0;
    gl_Position = vec4(clip.x, -clip.y, 0.0, 1.0);
}
