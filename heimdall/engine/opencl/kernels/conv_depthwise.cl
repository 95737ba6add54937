{# Depthwise convolution, one weight vector a tap for a block of channels. A work-item owns one
    block by tile_w x tile_h pixels.

    With a small kernel known at build time (taps > 0) it slides over the inputs of its tile:
    every input vector is loaded once and used by all pixels whose window holds it. Otherwise
    (large or dilated kernels) it loops over the taps and loads an input for each pixel.
    Weights: [block of channels][ky][kx][block]. #}
{% import "conv_common.cl" as common with context %}
{{ common.preamble() }}
__kernel void conv_depthwise(
{{ common.arguments() }}    int x_pixel)
{
{{ common.place(1) }}
    __global const S *tile = x + x_base + ob * x_plane + y0 * x_row + x0 * {{ pixel }};
    __global const SV *w = (__global const SV *)weights + (size_t)ob * taps_y * taps_x;
    const V b = ((__global const V *)bias)[ob];
{% for r in range(tile_h) %}
{% for t in range(tile_w) %}
    V c{{ r }}_{{ t }} = b;
{% endfor %}
{% endfor %}
{% if taps %}
{% for iy in range((tile_h - 1) * stride + taps) %}
    {
        __global const SV *from = (__global const SV *)(tile + {{ iy }} * tap_row);
{% for r in range(tile_h) if 0 <= iy - r * stride < taps %}
{% for k in range(taps) %}
        const V w{{ r }}_{{ k }} = WIDE(w[{{ (iy - r * stride) * taps + k }}]);
{% endfor %}
{% endfor %}
{% for ix in range((tile_w - 1) * stride + taps) %}
        {
            const V a = WIDE(from[{{ ix }}]);
{% for r in range(tile_h) if 0 <= iy - r * stride < taps %}
{% for t in range(tile_w) if 0 <= ix - t * stride < taps %}
            c{{ r }}_{{ t }} = fma(a, w{{ r }}_{{ ix - t * stride }}, c{{ r }}_{{ t }});
{% endfor %}
{% endfor %}
        }
{% endfor %}
    }
{% endfor %}
{% else %}
    for (int ky = 0; ky < taps_y; ky++)
        for (int kx = 0; kx < taps_x; kx++) {
            __global const S *from = tile + ky * tap_row + kx * tap_col;
            const V k = WIDE(*w++);
{% for r in range(tile_h) %}
{% for t in range(tile_w) %}
            c{{ r }}_{{ t }} = fma(WIDE(*(__global const SV *)(from + {{ r }} * x_row + {{ t }} * {{ pixel }})), k, c{{ r }}_{{ t }});
{% endfor %}
{% endfor %}
        }
{% endif %}
{% for r in range(tile_h) %}
{% for t in range(tile_w) %}
    {{ common.store("c%d_%d"|format(r, t), 0, r, t) }}
{% endfor %}
{% endfor %}
}
