{# Direct convolution. One work-item owns a register tile of out_blocks x block output channels
    by tile_w x tile_h pixels. For every input channel and tap it loads the packed weights of all
    its output channels (out_blocks vectors), broadcasts one input value a pixel, and issues
    out_blocks x tile_w x tile_h multiply-adds: few loads, no masks, no shuffles.

    Input channels come in blocks of x_plane floats; inside a block they are neighbours and are
    unrolled by `unroll`. Planar input is a block of one channel. Weights are packed in the
    order of reading: [group of output blocks][input block][ky][kx][channel][out_blocks][block].

    With `half`, one more block of at most half its lanes follows, in vectors of half the width: a
    core computes two of them in the time of a whole one, or takes no longer.

    With `rows_apart` every row of the picture has weights of its own, as matrices of a batch have,
    and work-items that follow each other write side by side: the result is the largest matrix.

    Template variables beside conv_common.cl: out_blocks, unroll, pixel (floats between the
    inputs of neighbouring output pixels, or "x_pixel" when not known at build time), taps (rows
    and columns of the window where they are to be unrolled, and a block of channels is one step). #}
{% import "conv_common.cl" as common with context %}
{% set vectors = out_blocks + (1 if half else 0) %}
{% if half %}
typedef float{{ block // 2 }} H;
{% endif %}
{# What the channels of one block add, seen through one tap of the window. #}
{% macro from_block(first) %}
{
                __global const S *x_0 = {{ first }};
{% for r in range(1, tile_h) %}
                __global const S *x_{{ r }} = x_0 + {{ r }} * x_row;
{% endfor %}
{% if not taps %}
                for (int c = 0; c < count; c++)
{% endif %}
                {
{% if taps and unroll == 4 %}
{% for r in range(tile_h) %}
{% for t in range(tile_w) %}
                    const float4 v{{ r }}_{{ t }} = WIDE(*(__global const SV *)(x_{{ r }} + {{ t }} * {{ pixel }}));
{% endfor %}
{% endfor %}
{% endif %}
{% for u in range(unroll) %}
                    {
{% for j in range(out_blocks) %}
                        const V w{{ j }} = WIDE(w[{{ u * vectors + j }}]);
                        {{ common.fetch_weights(u * vectors + j) }}
{% endfor %}
{% if half %}
                        const H narrow = WIDE(w[{{ u * vectors + out_blocks }}]).lo;
{% endif %}
{% for r in range(tile_h) %}
{% for t in range(tile_w) %}
                        {
                            const float a = {{ "v%d_%d.s%d"|format(r, t, u) if taps and unroll == 4 else "x_%d[%d * %s + %d]"|format(r, t, pixel, u) }};
{% for j in range(out_blocks) %}
                            c{{ j }}_{{ r }}_{{ t }} = fma((V)(a), w{{ j }}, c{{ j }}_{{ r }}_{{ t }});
{% endfor %}
{% if half %}
                            d{{ r }}_{{ t }} = fma((H)(a), narrow, d{{ r }}_{{ t }});
{% endif %}
                        }
{% endfor %}
{% endfor %}
                    }
{% endfor %}
                    w += {{ unroll * vectors }};
{% for r in range(tile_h) %}
                    x_{{ r }} += {{ unroll }};
{% endfor %}
                }
            }
{% endmacro %}
{{ common.fetch() }}{{ common.preamble() }}
__kernel void conv_dense(
{{ common.arguments() }}    int x_pixel, int w_group,  // w_group: packed weights of one work-item
{% if rows_apart %}
    int w_base, int w_row,
{% endif %}
    int blocks, int steps, int last_steps)  // input blocks; unrolled steps in each and in the last
{
{{ common.place(vectors, axes=(1, 2, 0) if rows_apart else (0, 1, 2)) }}
    __global const S *tile = x + x_base + y0 * x_row + x0 * {{ pixel }};
    __global const SV *w = (__global const SV *)(weights + (size_t)g * w_group{{ " + w_base + (size_t)y0 * w_row" if rows_apart }});
    __global const V *b = (__global const V *)bias + ob;
{{ common.begin_tile(out_blocks) }}
{% if half %}
{% for r in range(tile_h) %}
{% for t in range(tile_w) %}
    H d{{ r }}_{{ t }} = b[{{ out_blocks }}].lo;
{% endfor %}
{% endfor %}
{% endif %}

{% if taps == (1, 1) %}
    int ib = 0;
    for (; ib + 4 <= blocks; ib += 4) {
{% for ahead in range(4) %}
        {{ from_block("tile + (ib + %d) * x_plane"|format(ahead)) }}
{% endfor %}
    }
    for (; ib < blocks; ib++) {{ from_block("tile + ib * x_plane") }}
{% elif taps %}
    for (int ib = 0; ib < blocks; ib++) {
{% for ky in range(taps[0]) %}
{% for kx in range(taps[1]) %}
        {{ from_block("tile + ib * x_plane + %d * tap_row + %d * tap_col"|format(ky, kx)) }}
{% endfor %}
{% endfor %}
    }
{% else %}
    for (int ib = 0; ib < blocks; ib++) {
        const int count = ib == blocks - 1 ? last_steps : steps;
{% if device == "cpu" and unroll == 4 %}
        // the next block of channels is far away: a core does not expect it
{% for r in range(tile_h) %}
{% for t in range(tile_w) %}
        FETCH(tile + (ib + 1) * x_plane + {{ r }} * x_row + {{ t }} * {{ pixel }});
{% endfor %}
{% endfor %}
{% endif %}
        for (int ky = 0; ky < taps_y; ky++)
            for (int kx = 0; kx < taps_x; kx++)
                {{ from_block("tile + ib * x_plane + ky * tap_row + kx * tap_col") }}
    }
{% endif %}
{{ common.store_tile(out_blocks) }}{% if half %}
{% for r in range(tile_h) %}
{% for t in range(tile_w) %}
    {{ common.store("(V)(d%d_%d, (H)(0.0f))"|format(r, t), out_blocks, r, t) }}
{% endfor %}
{% endfor %}
{% endif %}
}
