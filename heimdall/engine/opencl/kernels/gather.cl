{# Rows and columns picked by tables (-1: the fill value), channels from `shift` on.
    Variables: closes (True: the lanes of the last block from `used` on become zero), lanes (True: channel by channel, where shift is not a whole number of blocks or
    the source ends inside a block). #}
{% import "common.cl" as common with context %}
{{ common.vector() }}

{{ common.group() }}
__kernel void gather(
    __global const S *restrict x, int x_base, int x_plane, int x_row, int channels, int shift,
    __global const int *restrict rows, __global const int *restrict columns, float fill,
    __global S *restrict y, int y_base, int y_plane, int y_row,
    int blocks, int used, {{ common.grid() }}) {
{{ common.place() }}
    for (int py = y0; py < y1; py++) {
        const int sy = rows[py];
        __global S *to = y + y_base + b * y_plane + py * y_row;
        __global const S *row = x + x_base + max(sy, 0) * x_row;
        for (int px = x0; px < x1; px++) {
            const int sx = columns[px];
            const bool inside = sy >= 0 && sx >= 0;
{% if lanes %}
            for (int lane = 0; lane < {{ block }}; lane++) {
                const int c = b * {{ block }} + lane + shift;
                float v = fill;
                if (inside && c >= 0 && c < channels)
                    v = row[(c / {{ block }}) * x_plane + sx * {{ block }} + c % {{ block }}];
{% if closes %}
                if (b == blocks - 1 && lane >= used) v = 0.0f;
{% endif %}
                to[px * {{ block }} + lane] = v;
            }
{% else %}
            const int from = b + shift / {{ block }};
            V v = (V)(fill);
            if (inside && from >= 0 && from * {{ block }} < channels)
                v = GET(row + from * x_plane + sx * {{ block }});
{% if closes %}
            if (b == blocks - 1) v = {{ common.lanes() }} < (V)(used) ? v : (V)(0.0f);
{% endif %}
            PUT(to + px * {{ block }}, v);
{% endif %}
        }
    }
}
