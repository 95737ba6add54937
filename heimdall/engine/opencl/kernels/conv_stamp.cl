{# Transposed convolution to one planar channel whose windows do not overlap (the kernel is as
    large as the stride): every input pixel stamps kernel_h x kernel_w outputs. Lanes are the
    outputs of a stamp. Weights: [input channel][lane]. #}
{% import "conv_common.cl" as common with context %}
{{ common.preamble() }}
__kernel void conv_stamp(
{{ common.arguments() }}    int next_row,  // from one output row to the next
    int blocks, int last_steps)  // input blocks; steps of four channels in the last of them
{
{{ common.place(1) }}
    __global const S *tile = x + x_base + y0 * x_row + x0 * {{ pixel }};
    __global const SV *w = (__global const SV *)weights;
{% for t in range(tile_w) %}
    V c{{ t }} = (V)(bias[0]);
{% endfor %}
    for (int ib = 0; ib < blocks; ib++) {
        const int count = ib == blocks - 1 ? last_steps : {{ pixel // 4 }};
        for (int c = 0; c < count; c++) {
            __global const S *from = tile + ib * x_plane + 4 * c;
{% for u in range(4) %}
            {
                const V k = WIDE(w[{{ u }}]);
{% for t in range(tile_w) %}
                c{{ t }} = fma((V)((float)from[{{ t * pixel + u }}]), k, c{{ t }});
{% endfor %}
            }
{% endfor %}
            w += 4;
        }
    }
{% for t in range(tile_w) %}
    {
        V v = c{{ t }};
{% if slopes %}
        const V s = (V)(slope[0]);
{% endif %}
        {{ common.activate("V") }}
        __global S *to = y + y_base + y0 * y_row + (x0 + {{ t }}) * y_pixel;
{% for ky in range(kernel_h) %}
{% for kx in range(kernel_w) %}
        to[{{ ky }} * next_row + {{ kx }}] = v.s{{ "%x"|format(ky * kernel_w + kx) }};
{% endfor %}
{% endfor %}
    }
{% endfor %}
}
