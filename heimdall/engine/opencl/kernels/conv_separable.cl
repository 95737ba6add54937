{# A depthwise convolution and the pointwise one (1x1) that alone reads its result, in one launch.
    A work-item owns tile_w x tile_h pixels of all channels. It first convolves each block of
    channels as conv_depthwise.cl does, into private memory that stays in the first-level cache;
    then it multiplies as conv_dense.cl does, out_blocks blocks of outputs at a time and at last the
    `rest`, to which with `half` one more block belongs of which half the lanes are enough. The tensor in between is never written, and cores meet once instead of twice.

    weights: [block][ky][kx][block], pointwise: those of conv_dense.cl, group after group. The
    arguments of conv_common.cl describe the depthwise input and the pointwise result.

    Template variables beside conv_common.cl: taps, stride (of the depthwise kernel), inner (its
    activation, a macro ACT_INNER), room (vectors of private memory), out_blocks,
    rest, half. Only for CPUs: private memory of a GPU's work-item is not near it. #}
{% import "conv_common.cl" as common with context %}
{% set pixels = tile_w * tile_h %}
{{ inner }}
{% if half %}
typedef float{{ block // 2 }} H;
{% endif %}
{{ common.fetch() }}{{ common.preamble() }}
__kernel void conv_separable(
{{ common.arguments() }}    __global const float *restrict inner_bias, float inner_p, float inner_q,
    __global const S *restrict pointwise,
    int blocks, int last_steps, int whole)  // blocks read; fours of channels in the last; blocks before `rest`
{
{{ common.place("(whole + %d)"|format(rest + half)) }}
    V held[{{ room }}];  // [block][pixel]
    for (int ib = 0; ib < blocks; ib++) {
        __global const S *tile = x + x_base + ib * x_plane + y0 * x_row + x0 * {{ pixel }};
        __global const SV *k = (__global const SV *)weights + ib * {{ taps * taps }};
        const V start = ((__global const V *)inner_bias)[ib];
{% for r in range(tile_h) %}
{% for t in range(tile_w) %}
        V d{{ r }}_{{ t }} = start;
{% endfor %}
{% endfor %}
{% for iy in range((tile_h - 1) * stride + taps) %}
        {
            __global const SV *from = (__global const SV *)(tile + {{ iy }} * tap_row);
{% for r in range(tile_h) if 0 <= iy - r * stride < taps %}
{% for c in range(taps) %}
            const V k{{ r }}_{{ c }} = WIDE(k[{{ (iy - r * stride) * taps + c }}]);
{% endfor %}
{% endfor %}
{% for ix in range((tile_w - 1) * stride + taps) %}
            {
                const V a = WIDE(from[{{ ix }}]);
                // the next block of channels is far away: a core does not expect it
                FETCH((__global const S *)(from + {{ ix }}) + x_plane);
{% for r in range(tile_h) if 0 <= iy - r * stride < taps %}
{% for t in range(tile_w) if 0 <= ix - t * stride < taps %}
                d{{ r }}_{{ t }} = fma(a, k{{ r }}_{{ ix - t * stride }}, d{{ r }}_{{ t }});
{% endfor %}
{% endfor %}
            }
{% endfor %}
        }
{% endfor %}
{% for r in range(tile_h) %}
{% for t in range(tile_w) %}
        held[ib * {{ pixels }} + {{ r * tile_w + t }}] = ACT_INNER(V, d{{ r }}_{{ t }}, inner_p, inner_q, 0);
{% endfor %}
{% endfor %}
    }

    __global const SV *w = (__global const SV *)pointwise;
    __global const V *b = (__global const V *)bias;
{% macro multiply(count, half) %}
{% set vectors = count + half %}
        {
{% for j in range(count) %}
{% for i in range(pixels) %}
            V c{{ j }}_{{ i }} = b[ob + {{ j }}];
{% endfor %}
{% endfor %}
{% if half %}
{% for i in range(pixels) %}
            H h{{ i }} = b[ob + {{ count }}].lo;
{% endfor %}
{% endif %}
            for (int ib = 0; ib < blocks; ib++) {
                const float *from = (const float *)(held + ib * {{ pixels }});
                const int steps = ib == blocks - 1 ? last_steps : {{ block // 4 }};
                for (int s = 0; s < steps; s++) {
{% for u in range(4) %}
                    {
{% for j in range(count) %}
                        const V w{{ j }} = WIDE(w[{{ u * vectors + j }}]);
{% endfor %}
{% if half %}
                        const H narrow = WIDE(w[{{ u * vectors + count }}]).lo;
{% endif %}
{% for i in range(pixels) %}
                        {
                            const float a = from[{{ i * block + u }}];
{% for j in range(count) %}
                            c{{ j }}_{{ i }} = fma((V)(a), w{{ j }}, c{{ j }}_{{ i }});
{% endfor %}
{% if half %}
                            h{{ i }} = fma((H)(a), narrow, h{{ i }});
{% endif %}
                        }
{% endfor %}
                    }
{% endfor %}
                    w += {{ 4 * vectors }};
                    from += 4;
                }
            }
{% for j in range(count) %}
{% for r in range(tile_h) %}
{% for t in range(tile_w) %}
            {{ common.store("c%d_%d"|format(j, r * tile_w + t), j, r, t) }}
{% endfor %}
{% endfor %}
{% endfor %}
{% if half %}
{% for r in range(tile_h) %}
{% for t in range(tile_w) %}
            {{ common.store("(V)(h%d, (H)(0.0f))"|format(r * tile_w + t), count, r, t) }}
{% endfor %}
{% endfor %}
{% endif %}
        }
{% endmacro %}
{% if out_blocks %}
    for (int ob = 0; ob < whole; ob += {{ out_blocks }})
{{ multiply(out_blocks, 0) }}
{% endif %}
{% if rest or half %}
    {
        const int ob = whole;
{{ multiply(rest, half) }}
    }
{% endif %}
}
