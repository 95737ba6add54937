{# Winograd F(4x4, 3x3) after Lavin and Gray, first half: every 6x6 window of the input becomes
    B' d B, 36 numbers a channel, of which winograd.cl makes 4x4 outputs. A work-item transforms
    the tile_w windows of one group for one block of channels; they lie as winograd.cl walks over
    them: [group][36][block][tile_w][lanes]. The last group is shifted back, and so is the last
    window of a row or column: no masks. With `gathered` every lane is read from a place of its own
    (an offset from the first), and the neighbour of a pixel is `pixel` floats away. #}
{% import "conv_common.cl" as memory with context %}
{% import "winograd_common.cl" as common with context %}
typedef float{{ block }} V;
{{ memory.fetch() }}
{% macro transform(to, d) %}
            const V p = fma((V)(-4.0f), {{ d }}2, {{ d }}4), q = fma((V)(-4.0f), {{ d }}1, {{ d }}3);
            const V r = {{ d }}4 - {{ d }}2, s = 2.0f * ({{ d }}3 - {{ d }}1);
            {{ to(0) }} = fma((V)(4.0f), {{ d }}0, fma((V)(-5.0f), {{ d }}2, {{ d }}4));
            {{ to(1) }} = p + q;
            {{ to(2) }} = p - q;
            {{ to(3) }} = r + s;
            {{ to(4) }} = r - s;
            {{ to(5) }} = fma((V)(4.0f), {{ d }}1, fma((V)(-5.0f), {{ d }}3, {{ d }}5));
{% endmacro %}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void winograd_input(
    __global const float *restrict x, int x_base, int x_plane, int x_row,
{% if gathered %}
    __global const int *restrict offsets,
{% endif %}
    __global float *restrict windows, int place, int width, int height, int first_group, int blocks)
{
    const int ib = get_global_id(1);
    __global V *group = (__global V *)(windows + place) + ((int)get_global_id(0) * 36 * blocks + ib) * {{ tile_w }};
    {{ common.group() }}
    for (int t = 0; t < {{ tile_w }}; t++) {
        {{ common.tile() }}
        __global const float *from = x + x_base + {{ "" if gathered else "ib * x_plane + " }}y0 * x_row + x0 * {{ pixel }};
        __global V *to = group + t;
{% if gathered %}
        float parts[{{ 36 * block }}];
        for (int lane = 0; lane < {{ block }}; lane++) {
            __global const float *own = from + offsets[ib * {{ block }} + lane];
{% for row in range(6) %}
{% for column in range(6) %}
            parts[{{ (row * 6 + column) * block }} + lane] = own[{{ row }} * x_row + {{ column * pixel }}];
{% endfor %}
{% endfor %}
        }
{% endif %}
{% if not gathered %}
{% for row in range(6) %}
{% for column in range(6, 10) %}
        FETCH(from + {{ row }} * x_row + {{ column * pixel }});  // of the next window
{% endfor %}
{% endfor %}
{% endif %}
{% for column in range(6) %}
        V {% for row in range(6) %}c{{ row }}{{ column }}{{ ", " if not loop.last }}{% endfor %};
        {
{% for row in range(6) %}
{% if gathered %}
            const V d{{ row }} = vload{{ block }}({{ row * 6 + column }}, parts);
{% else %}
            const V d{{ row }} = *(__global const V *)(from + {{ row }} * x_row + {{ column * pixel }});
{% endif %}
{% endfor %}
{% macro vertical(row) %}c{{ row }}{{ column }}{% endmacro %}
{{ transform(vertical, "d") }}        }
{% endfor %}
{% for row in range(6) %}
        {
{% macro horizontal(column) %}to[{{ row * 6 + column }} * blocks * {{ tile_w }}]{% endmacro %}
{{ transform(horizontal, "c%d"|format(row)) }}        }
{% endfor %}
    }
}
