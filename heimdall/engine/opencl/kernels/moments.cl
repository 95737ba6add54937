{# Mean and 1 / sqrt(variance + epsilon) of every channel. Each band of rows computes its own
    mean, then its squared deviations while the rows are still in the cache; `merge` combines the
    bands (Chan et al.): a sum of squares alone loses the variance of a channel with a large mean. #}
{% import "common.cl" as common with context %}
{{ common.vector() }}

{{ common.group() }}
__kernel void moments(
    __global const S *restrict x, int x_base, int x_plane, int x_row,
    __global float *restrict scratch, int place, int bands, {{ common.grid() }}) {
{{ common.place() }}
    if (x0 > 0 || y0 >= height) return;
    __global const S *plane = x + x_base + b * x_plane;
    V sum = (V)(0.0f);
    for (int py = y0; py < y1; py++) {
        V row = (V)(0.0f);
        for (int px = 0; px < width; px++) row += GET(plane + py * x_row + px * {{ block }});
        sum += row;
    }
    const V mean = sum / (V)((y1 - y0) * width);
    V squares = (V)(0.0f);
    for (int py = y0; py < y1; py++) {
        V row = (V)(0.0f);
        for (int px = 0; px < width; px++) {
            const V d = GET(plane + py * x_row + px * {{ block }}) - mean;
            row = fma(d, d, row);
        }
        squares += row;
    }
    __global float *to = scratch + place + (b * bands + y0 / chunk_h) * {{ 2 * block }};
    KEEP(to, mean);
    KEEP(to + {{ block }}, squares);
}

{{ common.group() }}
__kernel void merge(
    __global const float *restrict scratch, int place, int bands, int height, int width, int chunk_h,
    float epsilon, __global S *restrict mean_out, int mean_base,
    __global S *restrict deviation_out, int deviation_base, int blocks) {
    const int b = get_global_id(0);
    if (b >= blocks) return;
    V mean = (V)(0.0f), squares = (V)(0.0f);
    float count = 0.0f;
    for (int band = 0; band < bands; band++) {
        __global const float *from = scratch + place + (b * bands + band) * {{ 2 * block }};
        const float more = (float)((min((band + 1) * chunk_h, height) - band * chunk_h) * width);
        const V delta = KEPT(from) - mean;
        const float share = more / (count + more);
        mean = fma(delta, (V)(share), mean);
        squares += KEPT(from + {{ block }}) + delta * delta * (V)(count * share);
        count += more;
    }
    PUT(mean_out + mean_base + b * {{ block }}, mean);
    PUT(deviation_out + deviation_base + b * {{ block }},
        (V)(1.0f) / sqrt(squares / (V)(count) + (V)(epsilon)));
}
