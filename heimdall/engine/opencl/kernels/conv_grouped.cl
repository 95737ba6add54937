{# Convolution in groups: the outputs of a work-item read a list of input channels, and no others.
    The register tile is that of conv_dense.cl. A list need not follow the order of the input, so a
    shuffle of channels in front of the layer costs nothing.

    `places`: where each listed channel begins, in floats from the first; lists are whole fours.
    `begins`: the first four of each group of output blocks, and the end of the last.
    Weights: [group of output blocks][four][ky][kx][channel of the four][out_blocks][block].

    Template variables beside conv_common.cl: out_blocks, pixel (see conv_dense.cl). #}
{% import "conv_common.cl" as common with context %}
{{ common.fetch() }}{{ common.preamble() }}
__kernel void conv_grouped(
{{ common.arguments() }}    int x_pixel,
    __global const int *restrict places, __global const int *restrict begins)
{
{{ common.place(out_blocks) }}
    __global const S *tile = x + x_base + y0 * x_row + x0 * {{ pixel }};
    const int end = begins[g + 1];
    __global const SV *w = (__global const SV *)weights
        + (size_t)begins[g] * (4 * {{ out_blocks }}) * taps_y * taps_x;
    __global const V *b = (__global const V *)bias + ob;
{{ common.begin_tile(out_blocks) }}
    for (int four = begins[g]; four < end; four++) {
        const int4 at = vload4(four, places);
        for (int ky = 0; ky < taps_y; ky++)
            for (int kx = 0; kx < taps_x; kx++) {
                __global const S *window = tile + ky * tap_row + kx * tap_col;
{% for u in range(4) %}
                {
                    __global const S *x_0 = window + at.s{{ u }};
{% for r in range(1, tile_h) %}
                    __global const S *x_{{ r }} = x_0 + {{ r }} * x_row;
{% endfor %}
{% for j in range(out_blocks) %}
                    const V w{{ j }} = WIDE(w[{{ u * out_blocks + j }}]);
                    {{ common.fetch_weights(u * out_blocks + j) }}
{% endfor %}
{% for r in range(tile_h) %}
{% for t in range(tile_w) %}
                    {
                        const float a = x_{{ r }}[{{ t }} * {{ pixel }}];
{% for j in range(out_blocks) %}
                        c{{ j }}_{{ r }}_{{ t }} = fma((V)(a), w{{ j }}, c{{ j }}_{{ r }}_{{ t }});
{% endfor %}
                    }
{% endfor %}
{% endfor %}
                }
{% endfor %}
                w += {{ 4 * out_blocks }};
            }
    }
{{ common.store_tile(out_blocks) }}}
