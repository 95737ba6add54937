{# Rows times a matrix of whole numbers of a few bits, as packed_product.cl has it: here the numbers
    become floats once for some rows. A work-item does some neighbours of a tile for some rows;
    those that share the neighbours come one after the other. x is (groups, depth, rows of a group).
    Variables: block (lanes), wide (vectors of a work-item), taken (its rows), bits, size (of a
    block), middle (of all, or -1). #}
{% import "common.cl" as common with context %}
{{ common.vector() }}{{ common.unaligned() }}
{% set lanes = block if block > 1 else "" %}
{% set load = ("vload%d(0, " % block if block > 1 else "*(") %}
{% set per = 32 // bits %}

{{ common.group() }}
__kernel void packed_rows(
    __global const S *restrict x, int x_base, __global const int *restrict words,
    __global const float *restrict scales, __global const float *restrict middles,
    __global S *restrict y, int y_base, int blocks, int columns, int tile, int groups) {
    const int group = (int)get_global_id(0) % groups;
    const int lane = (int)get_global_id(0) / groups * {{ block * wide }};
    if (lane >= columns) return;
    const int first = lane / tile, inner = lane - first * tile, depth = blocks * {{ size }};
    __global const int *w = words + first * blocks * {{ size // per }} * tile + inner;
    const int own = first * blocks * tile + inner;
    __global const S *from = x + x_base + group * {{ taken }} * depth;
{% for r in range(taken) %}{% for i in range(wide) %}
    V sum{{ r }}_{{ i }} = (V)(0.0f);
{% endfor %}{% endfor %}
    for (int b = 0; b < blocks; b++) {
{% for i in range(wide) %}
        const V scale{{ i }} = {{ load }}scales + own + b * tile + {{ i * block }});
{% if middle < 0 %}
        const V shift{{ i }} = -scale{{ i }} * {{ load }}middles + own + b * tile + {{ i * block }});
{% else %}
        const V shift{{ i }} = scale{{ i }} * {{ -middle }}.0f;
{% endif %}
{% endfor %}
        for (int word = 0; word < {{ size // per }}; word++, from += {{ per * taken }}, w += tile) {
{% for i in range(wide) %}
            const int{{ lanes }} packed{{ i }} = {{ load }}w + {{ i * block }});
{% endfor %}
{% for j in range(per) %}
            {
{% for i in range(wide) %}
                const V q{{ i }} = fma(
                    convert_float{{ lanes }}((packed{{ i }} >> {{ bits * j }}) & {{ 2 ** bits - 1 }}), scale{{ i }}, shift{{ i }});
{% endfor %}
{% for r in range(taken) %}
                const V a{{ r }} = (V)((float)from[{{ j * taken + r }}]);
{% for i in range(wide) %}
                sum{{ r }}_{{ i }} = fma(a{{ r }}, q{{ i }}, sum{{ r }}_{{ i }});
{% endfor %}
{% endfor %}
            }
{% endfor %}
        }
    }
    __global S *to = y + y_base + group * {{ taken }} * columns + lane;
{% for r in range(taken) %}{% for i in range(wide) %}
    STORE(to + {{ r }} * columns + {{ i * block }}, sum{{ r }}_{{ i }});
{% endfor %}{% endfor %}
}
