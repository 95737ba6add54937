{# Convolution with few output channels (at most `outputs`). Lanes hold neighbouring *input*
    channels, so none is wasted however few the outputs: each accumulator is a vector of partial
    sums, added up across its lanes once at the end. Each input vector is loaded once a tap and
    used for every output channel. Weights: [input block][ky][kx][output][block]. #}
{% import "conv_common.cl" as common with context %}
static float lane_sum(float{{ block }} v) {
{% if block == 16 %}
    const float8 e = v.lo + v.hi;
    const float4 f = e.lo + e.hi;
{% elif block == 8 %}
    const float4 f = v.lo + v.hi;
{% else %}
    const float4 f = v;
{% endif %}
    return (f.x + f.z) + (f.y + f.w);
}

{{ common.preamble() }}
__kernel void conv_few(
{{ common.arguments() }}    int x_pixel, int blocks)
{
{{ common.place(1) }}
    __global const S *tile = x + x_base + y0 * x_row + x0 * {{ pixel }};
    __global const SV *w = (__global const SV *)weights;
{% for o in range(outputs) %}
{% for t in range(tile_w) %}
    V c{{ o }}_{{ t }} = (V)(0.0f);
{% endfor %}
{% endfor %}

    for (int ib = 0; ib < blocks; ib++)
        for (int ky = 0; ky < taps_y; ky++)
            for (int kx = 0; kx < taps_x; kx++) {
                __global const S *from = tile + ib * x_plane + ky * tap_row + kx * tap_col;
{% for o in range(outputs) %}
                const V w{{ o }} = WIDE(w[{{ o }}]);
{% endfor %}
{% for t in range(tile_w) %}
                {
                    const V a = WIDE(*(__global const SV *)(from + {{ t }} * {{ pixel }}));
{% for o in range(outputs) %}
                    c{{ o }}_{{ t }} = fma(a, w{{ o }}, c{{ o }}_{{ t }});
{% endfor %}
                }
{% endfor %}
                w += {{ outputs }};
            }

{% if scatter %}
{% for t in range(tile_w) %}
{% for o in range(outputs) %}
    {
        float v = bias[{{ o }}] + lane_sum(c{{ o }}_{{ t }});
{% if residual != "none" %}
        const float a = added[r_base + y0 * r_row + (x0 + {{ t }}) * r_pixel + {{ o }} * r_lane];
{% endif %}
{% if slopes %}
        const float s = slope[{{ o }}];
{% endif %}
        {{ common.activate("float") }}
        y[y_base + y0 * y_row + (x0 + {{ t }}) * y_pixel + {{ o }} * y_lane] = v;
    }
{% endfor %}
{% endfor %}
{% else %}
    const V b = *(__global const V *)bias;
{% for t in range(tile_w) %}
    {
        V sums = b;
{% for o in range(outputs) %}
        sums.s{{ o }} += lane_sum(c{{ o }}_{{ t }});
{% endfor %}
        {{ common.store("sums", 0, 0, t) }}
    }
{% endfor %}
{% endif %}
}
