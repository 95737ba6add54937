{# Copies channels of one picture to other channels of another, `block` lanes at a time: the
    largest width at which source and target stay aligned. Variable: lanes (of the pictures). #}
{% import "common.cl" as common with context %}
{{ common.vector() }}

{{ common.group() }}
__kernel void move_channels(
    __global const S *restrict x, int x_base, int x_plane, int x_row, int first,
    __global S *restrict y, int y_base, int y_plane, int y_row, int target,
    {{ common.grid() }}) {
{{ common.place() }}
    const int from = first + b * {{ block }}, to = target + b * {{ block }};
    x += x_base + from / {{ lanes }} * x_plane + from % {{ lanes }};
    y += y_base + to / {{ lanes }} * y_plane + to % {{ lanes }};
    for (int py = y0; py < y1; py++)
        for (int px = x0; px < x1; px++)
            PUT(y + py * y_row + px * {{ lanes }}, GET(x + py * x_row + px * {{ lanes }}));
}
