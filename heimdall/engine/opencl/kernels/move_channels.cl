{# Copies channels of one picture to other channels of another, `block` lanes at a time: the
    largest width at which source and target stay aligned. Variables: lanes (of the pictures), closes
    (True: the lanes of the last block from `used` on become zero, for no other op writes them). #}
{% import "common.cl" as common with context %}
{{ common.vector() }}

{{ common.group() }}
__kernel void move_channels(
    __global const S *restrict x, int x_base, int x_plane, int x_row, int first,
    __global S *restrict y, int y_base, int y_plane, int y_row, int target,
    int pieces, int used, {{ common.grid() }}) {
{{ common.place() }}
    const int from = first + b * {{ block }}, to = target + b * {{ block }};
    x += x_base + from / {{ lanes }} * x_plane + from % {{ lanes }};
    y += y_base + to / {{ lanes }} * y_plane + to % {{ lanes }};
    for (int py = y0; py < y1; py++)
        for (int px = x0; px < x1; px++) {
            const V v = GET(x + py * x_row + px * {{ lanes }});
            __global S *pixel = y + py * y_row + px * {{ lanes }};
{% if closes and block == lanes %}
            PUT(pixel, b < pieces - 1 || {{ common.lanes() }} < (V)(used) ? v : (V)(0.0f));
{% else %}
            PUT(pixel, v);
{% if closes %}
            if (b == pieces - 1)
                for (int lane = used; lane < {{ lanes }}; lane++) pixel[lane - to % {{ lanes }}] = (S)0.0f;
{% endif %}
{% endif %}
        }
}
