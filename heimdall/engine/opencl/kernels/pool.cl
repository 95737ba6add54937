{# MaxPool and AveragePool: taps outside the picture are left out. Variables: mode, counted
    (average over all taps that fall into picture or padding). #}
{% import "common.cl" as common with context %}
{{ common.vector() }}

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
        for (int px = x0; px < x1; px++) {
            const int sx = px * stride_w - left;
            V sum = (V)({{ "-FLT_MAX" if mode == "max" else "0.0f" }});
            int taps = 0;
            for (int ky = 0; ky < kernel_h; ky++) {
                const int iy = sy + ky * dilation_h;
                for (int kx = 0; kx < kernel_w; kx++) {
                    const int ix = sx + kx * dilation_w;
{% if counted %}
                    taps += iy < x_height + bottom && ix < x_width + right;
{% endif %}
                    if (iy < 0 || iy >= x_height || ix < 0 || ix >= x_width) continue;
                    const V v = GET(plane + iy * x_row + ix * {{ block }});
{% if mode == "max" %}
                    sum = v > sum ? v : sum;
{% else %}
                    sum += v;
{% endif %}
{% if not counted %}
                    taps++;
{% endif %}
                }
            }
{% if mode == "average" %}
            sum /= (V)(taps);
{% endif %}
            PUT(y + y_base + b * y_plane + py * y_row + px * {{ block }}, sum);
        }
    }
}
