{# A row times a matrix of whole numbers of a few bits, which have a scale, and a middle that counts
    as zero, for each block of a column: y = sum over blocks of scale * (x q - middle * sum of x).
    Words are (tiles, words of a column, tile); scales and middles (tiles, blocks, tile); a work-item
    does some neighbours of a tile. A number stays where it is in its word: its x is divided instead.
    Variables: block (lanes), wide (vectors of a work-item), bits, size (of a block), middle (of all,
    or -1: there is one for each block). #}
{% import "common.cl" as common with context %}
{{ common.vector() }}{{ common.unaligned() }}
{% set lanes = block if block > 1 else "" %}
{% set load = ("vload%d(0, " % block if block > 1 else "*(") %}
{% set places = 16 // bits %}

{{ common.group() }}
__kernel void packed_product(
    __global const S *restrict x, int x_base, __global const int *restrict words,
    __global const float *restrict scales, __global const float *restrict middles,
    __global S *restrict y, int y_base, int blocks, int columns, int tile) {
    const int lane = (int)get_global_id(0) * {{ block * wide }};
    if (lane >= columns) return;
    const int first = lane / tile, inner = lane - first * tile;
    __global const int *w = words + first * blocks * {{ size * bits // 32 }} * tile + inner;
    const int own = first * blocks * tile + inner;
    __global const S *from = x + x_base;
{% for i in range(wide) %}
    V total{{ i }} = (V)(0.0f);
{% endfor %}
    for (int b = 0; b < blocks; b++) {
        float whole = 0.0f;
{% for i in range(wide) %}
        V sum{{ i }} = (V)(0.0f);
{% endfor %}
        for (int word = 0; word < {{ size * bits // 32 }}; word++, from += {{ 2 * places }}, w += tile) {
{% for half_ in (0, 1) %}{% for j in range(places) %}
            const float a{{ half_ }}{{ j }} = from[{{ half_ * places + j }}];
            const float x{{ half_ }}{{ j }} = a{{ half_ }}{{ j }} * {{ 2.0 ** (-bits * j) }}f;
{% endfor %}{% endfor %}
            whole += {% for half_ in (0, 1) %}{% for j in range(places) %}{{ " + " if half_ or j }}a{{ half_ }}{{ j }}{% endfor %}{% endfor %};
{% for i in range(wide) %}
            {
                const int{{ lanes }} low = {{ load }}w + {{ i * block }});
                const int{{ lanes }} high = low >> 16;
{% for half_ in (0, 1) %}{% for j in range(places) %}
                sum{{ i }} = fma((V)(x{{ half_ }}{{ j }}), convert_float{{ lanes }}(({{ "high" if half_ else "low" }}) & {{ ((2 ** bits - 1) * 2 ** (bits * j)) }}), sum{{ i }});
{% endfor %}{% endfor %}
            }
{% endfor %}
        }
{% for i in range(wide) %}
        {
            const int at = own + b * tile + {{ i * block }};
            const V scale = {{ load }}scales + at);
{% if middle < 0 %}
            const V zero = {{ load }}middles + at);
{% else %}
            const V zero = (V)({{ middle }}.0f);
{% endif %}
            total{{ i }} = fma(scale, sum{{ i }} - zero * whole, total{{ i }});
        }
{% endfor %}
    }
{% for i in range(wide) %}
    STORE(y + y_base + lane + {{ i * block }}, total{{ i }});
{% endfor %}
}
