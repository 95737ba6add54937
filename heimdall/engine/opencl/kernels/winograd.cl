{# Winograd F(4x4, 3x3), second half: each of the 36 numbers of a transformed window is a matrix
    product of its own (one work-item: tile_w windows by out_blocks x block output channels), and
    A' m A of the 36 products gives 4x4 outputs: 36 multiply-adds a channel instead of 144. The
    products stay in private memory, that is in the cache, until all 36 are there.
    A window that is shifted back stores only what no other window does: windows at other places
    round differently, and which of two work-items comes last is a matter of luck.
    Packed weights, in the order of reading: [group of output blocks][36][channel][out_blocks][block].
    Windows: [group of windows][36][input block][tile_w][block]. #}
{% import "conv_common.cl" as common with context %}
{% import "winograd_common.cl" as grid with context %}
{{ common.fetch() }}{{ common.preamble() }}
{% macro transform(to, d, more="") %}
                const V plus1 = {{ d }}1{{ more }} + {{ d }}2{{ more }}, plus2 = {{ d }}3{{ more }} + {{ d }}4{{ more }};
                const V minus1 = {{ d }}1{{ more }} - {{ d }}2{{ more }}, minus2 = {{ d }}3{{ more }} - {{ d }}4{{ more }};
                {{ to }}0 = {{ d }}0{{ more }} + plus1 + plus2;
                {{ to }}1 = fma((V)(2.0f), minus2, minus1);
                {{ to }}2 = fma((V)(4.0f), plus2, plus1);
                {{ to }}3 = fma((V)(8.0f), minus2, minus1) + {{ d }}5{{ more }};
{% endmacro %}
__kernel void winograd(
    __global const float *restrict windows, int place,
    __global const float *restrict weights,
{{ common.results() }}    int first_group, int w_group,  // w_group: packed weights of one work-item
    int blocks, int last_steps)    // input blocks; steps of four channels in the last of them
{
    V products[{{ 36 * out_blocks * tile_w }}];
    __global const float *in = windows + place + (int)get_global_id(0) * 36 * blocks * {{ tile_w * block }};
    __global const V *w = (__global const V *)(weights + (size_t)get_global_id(1) * w_group);
    for (int at = 0; at < 36; at++) {
{% for j in range(out_blocks) %}
{% for t in range(tile_w) %}
        V c{{ j }}_{{ t }} = (V)(0.0f);
{% endfor %}
{% endfor %}
        for (int ib = 0; ib < blocks; ib++) {
            const int count = ib == blocks - 1 ? last_steps : {{ block // 4 }};
            for (int c = 0; c < count; c++) {
                __global const float *a = in + 4 * c;
{% for u in range(4) %}
                {
{% for j in range(out_blocks) %}
                    const V w{{ j }} = w[{{ u * out_blocks + j }}];
                    {{ common.fetch_weights(u * out_blocks + j) }}
{% endfor %}
{% for t in range(tile_w) %}
                    {
                        const V one = (V)(a[{{ t * block + u }}]);
{% for j in range(out_blocks) %}
                        c{{ j }}_{{ t }} = fma(one, w{{ j }}, c{{ j }}_{{ t }});
{% endfor %}
                    }
{% endfor %}
                }
{% endfor %}
                w += {{ 4 * out_blocks }};
            }
            in += {{ tile_w * block }};
        }
{% for j in range(out_blocks) %}
{% for t in range(tile_w) %}
        products[at * {{ out_blocks * tile_w }} + {{ j * tile_w + t }}] = c{{ j }}_{{ t }};
{% endfor %}
{% endfor %}
    }

    {{ grid.group() }}
    for (int j = 0; j < {{ out_blocks }}; j++) {
        const int ob = first_block + (int)get_global_id(1) * {{ out_blocks }} + j;
        const V b = ((__global const V *)bias)[ob];
        for (int t = 0; t < {{ tile_w }}; t++) {
            {{ grid.tile() }}
            const V *m = products + j * {{ tile_w }} + t;
{% for column in range(6) %}
            V {% for row in range(4) %}c{{ column }}_{{ row }}{{ ", " if not loop.last }}{% endfor %};
            {
{% for row in range(6) %}
                const V d{{ row }} = m[{{ (row * 6 + column) * out_blocks * tile_w }}];
{% endfor %}
{{ transform("c%d_"|format(column), "d") }}            }
{% endfor %}
{% for row in range(4) %}
            {
                V o0, o1, o2, o3;
                {
{{ transform("o", "c", "_%d"|format(row)) }}                }
{% for column in range(4) %}
                if ({{ row }} >= own_y - y0 && {{ column }} >= own_x - x0) {
                    {{ common.store("b + o%d"|format(column), 0, row, column) }}
                }
{% endfor %}
            }
{% endfor %}
        }
    }
}
