{# Between arrays and channel blocks. Variables: unpack (True: picture to array), lanes of
    a block (any number, as packed weights have them; vectors are not used: block is 1). The array's strides are given along channels, rows and columns. #}
{% import "common.cl" as common with context %}
{{ common.vector() }}

{{ common.group() }}
__kernel void pack(
    __global {{ "" if unpack else "const " }}S *restrict array,
    int base, int step_c, int step_y, int step_x, int channels,
    __global {{ "const " if unpack else "" }}S *restrict picture, int p_base, int p_plane, int p_row,
    {{ common.grid() }}) {
{{ common.place() }}
    const int count = min({{ lanes }}, channels - b * {{ lanes }});
    for (int py = y0; py < y1; py++) {
        for (int px = x0; px < x1; px++) {
            __global {{ "" if unpack else "const " }}S *a =
                array + base + b * {{ lanes }} * step_c + py * step_y + px * step_x;
            __global {{ "const " if unpack else "" }}S *p =
                picture + p_base + b * p_plane + py * p_row + px * {{ lanes }};
{% if unpack %}
            for (int lane = 0; lane < count; lane++) a[lane * step_c] = p[lane];
{% else %}
            for (int lane = 0; lane < {{ lanes }}; lane++)
                p[lane] = lane < count ? a[lane * step_c] : (S)0.0f;
{% endif %}
        }
    }
}
