{# Local response normalisation across channels. #}
{% import "common.cl" as common with context %}
{{ common.vector() }}

{{ common.group() }}
__kernel void lrn(
    __global const S *restrict x, int x_base, int x_plane, int x_row, int channels,
    int before, int after, float alpha, float beta, float bias,
    __global S *restrict y, int y_base, int y_plane, int y_row, {{ common.grid() }}) {
{{ common.place() }}
    for (int py = y0; py < y1; py++) {
        for (int px = x0; px < x1; px++) {
            __global const S *pixel = x + x_base + py * x_row + px * {{ block }};
            __global S *to = y + y_base + b * y_plane + py * y_row + px * {{ block }};
            // Sums lane by lane, for windows reach across blocks; the power, which is dear, at once.
            float sums[{{ block }}], values[{{ block }}];
            for (int lane = 0; lane < {{ block }}; lane++) {
                const int c = b * {{ block }} + lane;
                float sum = 0.0f;
                for (int k = max(0, c - before); k <= min(channels - 1, c + after); k++) {
                    const float v = pixel[k / {{ block }} * x_plane + k % {{ block }}];
                    sum = fma(v, v, sum);
                }
                sums[lane] = sum;
                values[lane] = c < channels ? (float)pixel[b * x_plane + lane] : 0.0f;
            }
{% if block == 1 %}
            const V sum = sums[0], value = values[0];
{% else %}
            const V sum = vload{{ block }}(0, sums), value = vload{{ block }}(0, values);
{% endif %}
            PUT(to, value * exp2(-beta * log2((V)(bias) + alpha * sum)));
        }
    }
}
