// A quad around each rounded bar, one pixel larger for the smooth edge.
uniform vec2 u_surface;  // pixels
in vec2 in_centre;
in vec2 in_axis;          // half of the long axis
in vec2 in_width_radius;  // half width, corner radius
in vec4 in_color;
noperspective out vec2 v_place;  // pixels from the centre, along and across the axis
flat out vec3 v_half;            // half length and half width without corners, radius
flat out vec4 v_color;

void main() {
    float along = length(in_axis);
    vec2 unit = along > 0.0 ? in_axis / along : vec2(1.0, 0.0);
    vec2 side = vec2(gl_VertexID & 1, (gl_VertexID >> 1) & 1) * 2.0 - 1.0;
    v_place = side * (vec2(along, in_width_radius.x) + 1.0);
    v_half = vec3(vec2(along, in_width_radius.x) - in_width_radius.y, in_width_radius.y);
    v_color = in_color;
    vec2 pixel = in_centre + unit * v_place.x + vec2(-unit.y, unit.x) * v_place.y;
    vec2 clip = pixel / u_surface * 2.0 - 1.0;
    gl_Position = vec4(clip.x, -clip.y, 0.0, 1.0);
}
