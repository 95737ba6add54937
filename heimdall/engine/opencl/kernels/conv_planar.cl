{# Convolution from planar (NCHW) to planar tensors, for layers with few channels on either side.
    Lanes are neighbouring pixels of a row, so no lane is wasted however few the channels are. A
    work-item owns `outputs` channels by tile_w vectors by tile_h rows; the last group of channels
    is shifted back like the last tile. Weights: [input channel][ky][kx][output channel].
    With `blocked` the results go to a tensor in channel blocks that has no more channels. #}
{% import "conv_common.cl" as common with context %}
{{ common.preamble() }}
__kernel void conv_planar(
{{ common.arguments() }}
    int x_channels, int y_channels)
{
{{ common.place(1, tile_w * block) }}
    const int first = min(g * {{ outputs }}, y_channels - {{ outputs }});
    __global const S *tile = x + x_base + y0 * x_row + x0;
    __global const S *w = weights + first;
{% for o in range(outputs) %}
{% for r in range(tile_h) %}
{% for t in range(tile_w) %}
    V c{{ o }}_{{ r }}_{{ t }} = (V)(bias[first + {{ o }}]);
{% endfor %}
{% endfor %}
{% endfor %}

    for (int c = 0; c < x_channels; c++)
        for (int ky = 0; ky < taps_y; ky++)
            for (int kx = 0; kx < taps_x; kx++) {
                __global const S *from = tile + c * x_plane + ky * tap_row + kx * tap_col;
{% for o in range(outputs) %}
                const V w{{ o }} = (V)((float)w[{{ o }}]);
{% endfor %}
{% for r in range(tile_h) %}
{% for t in range(tile_w) %}
                {
                    const V a = WIDE(vload{{ block }}({{ t }}, from + {{ r }} * x_row));
{% for o in range(outputs) %}
                    c{{ o }}_{{ r }}_{{ t }} = fma(a, w{{ o }}, c{{ o }}_{{ r }}_{{ t }});
{% endfor %}
                }
{% endfor %}
{% endfor %}
                w += y_channels;
            }

{% for r in range(tile_h) %}
{% for t in range(tile_w) %}
{% for o in range(outputs) %}
    {
        V v = c{{ o }}_{{ r }}_{{ t }};
{% if residual != "none" %}
        const V a = WIDE(vload{{ block }}({{ t }}, added + r_base + (first + {{ o }}) * r_plane + (y0 + {{ r }}) * r_row + x0));
{% endif %}
{% if slopes %}
        const V s = (V)(slope[first + {{ o }}]);
{% endif %}
        {{ common.activate("V") }}
{% if blocked %}
        c{{ o }}_{{ r }}_{{ t }} = v;
{% else %}
        vstore{{ block }}(NARROW(v), {{ t }}, y + y_base + (first + {{ o }}) * y_plane + (y0 + {{ r }}) * y_row + x0);
{% endif %}
    }
{% endfor %}
{% if blocked %}
    {
        __global S *to = y + y_base + (y0 + {{ r }}) * y_row + (x0 + {{ t * block }}) * y_pixel;
{% for i in range(block) %}
        *(__global SV *)(to + {{ i }} * y_pixel) = NARROW((V)(
            {% for o in range(block) %}{{ "c%d_%d_%d.s%x"|format(o, r, t, i) if o < outputs else "0.0f" }}{{ ", " if not loop.last }}{% endfor %}));
{% endfor %}
    }
{% endif %}
{% endfor %}
{% endfor %}
}
