{# MaxPool and AveragePool: taps outside the picture are left out. Variables: mode, counted
    (average over all taps that fall into picture or padding), taps_h, taps_w (the kernel, where it
    is small and not dilated: unrolled for windows that lie within the picture; else 0). #}
{% import "common.cl" as common with context %}
{{ common.vector() }}
{% if mode == "max" %}
#define START ((V)(-INFINITY))
// NaN passes through from either. A window of 3x3 at each pixel takes a tenth longer for it; a mask
// of the lanes that met NaN, or a sum that shows it, was no faster.
#define JOIN(a, b) ((((a) > (b)) | ((a) != (a))) ? (a) : (b))
{% else %}
#define START ((V)(0.0f))
#define JOIN(a, b) ((a) + (b))
{% endif %}
// The first tap at or behind `edge` of a window that begins at `from`.
#define FIRST(from, edge, dilation) (((edge) - (from) + (dilation) - 1) / (dilation))

{{ common.group() }}
__kernel void pool(
    __global const S *restrict x, int x_base, int x_plane, int x_row, int x_height, int x_width,
    __global S *restrict y, int y_base, int y_plane, int y_row,
    int kernel_h, int kernel_w, int stride_h, int stride_w, int dilation_h, int dilation_w,
    int top, int left, int bottom, int right, {{ common.grid() }}) {
{{ common.place() }}
    __global const S *plane = x + x_base + b * x_plane;
    for (int py = y0; py < y1; py++) {
        const int sy = py * stride_h - top;
        const int end_y = clamp(FIRST(sy, x_height, dilation_h), 0, kernel_h);
        const int first_y = sy < 0 ? min(FIRST(sy, 0, dilation_h), end_y) : 0;
        for (int px = x0; px < x1; px++) {
            const int sx = px * stride_w - left;
            V sum = START;
{% if taps_h %}
            if (sx >= 0 && sx + {{ taps_w }} <= x_width && end_y - first_y == {{ taps_h }}) {
                __global const S *from = plane + sy * x_row + sx * {{ block }};
{% for ky in range(taps_h) %}
{% for kx in range(taps_w) %}
                {
                    const V v = GET(from + {{ ky }} * x_row + {{ kx * block }});
                    sum = JOIN(v, sum);
                }
{% endfor %}
{% endfor %}
{% if mode == "average" %}
                sum *= (V)({{ 1.0 / (taps_h * taps_w) }}f);
{% endif %}
                PUT(y + y_base + b * y_plane + py * y_row + px * {{ block }}, sum);
                continue;
            }
{% endif %}
            const int end_x = clamp(FIRST(sx, x_width, dilation_w), 0, kernel_w);
            const int first_x = sx < 0 ? min(FIRST(sx, 0, dilation_w), end_x) : 0;
            for (int ky = first_y; ky < end_y; ky++) {
                __global const S *from = plane + (sy + ky * dilation_h) * x_row + sx * {{ block }};
                for (int kx = first_x; kx < end_x; kx++) {
                    const V v = GET(from + kx * dilation_w * {{ block }});
                    sum = JOIN(v, sum);
                }
            }
{% if mode == "average" %}
{% if counted %}
            const int taps = min(kernel_h, FIRST(sy, x_height + bottom, dilation_h))
                           * min(kernel_w, FIRST(sx, x_width + right, dilation_w));
{% else %}
            const int taps = (end_y - first_y) * (end_x - first_x);
{% endif %}
            sum /= (V)(taps);
{% endif %}
            PUT(y + y_base + b * y_plane + py * y_row + px * {{ block }}, sum);
        }
    }
}
