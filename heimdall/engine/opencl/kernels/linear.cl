{# Bilinear resize. rows and columns hold (low, high) index pairs, row_weight and column_weight
    the share of the high one. Products and sums are rounded one by one, in onnxruntime's order: in
    quantised networks means of neighbours are often half way between two steps. #}
{% import "common.cl" as common with context %}
{{ common.vector() }}

{{ common.group() }}
__kernel void linear(
    __global const S *restrict x, int x_base, int x_plane, int x_row,
    __global const int *restrict rows, __global const float *restrict row_weight,
    __global const int *restrict columns, __global const float *restrict column_weight,
    __global S *restrict y, int y_base, int y_plane, int y_row, {{ common.grid() }}) {
{{ common.place() }}
    for (int py = y0; py < y1; py++) {
        __global const S *low = x + x_base + b * x_plane + rows[2 * py] * x_row;
        __global const S *high = x + x_base + b * x_plane + rows[2 * py + 1] * x_row;
        const float below = row_weight[py], above = 1.0f - below;
        for (int px = x0; px < x1; px++) {
            const int left = columns[2 * px] * {{ block }}, right = columns[2 * px + 1] * {{ block }};
            const float after = column_weight[px], before = 1.0f - after;
            const V a = (V)(before * above) * GET(low + left), e = (V)(after * above) * GET(low + right);
            const V c = (V)(before * below) * GET(high + left), d = (V)(after * below) * GET(high + right);
            const V upper = a + e;
            const V three = upper + c;
            const V four = three + d;
            PUT(y + y_base + b * y_plane + py * y_row + px * {{ block }}, four);
        }
    }
}
