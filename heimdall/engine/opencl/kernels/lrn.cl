{# Local response normalisation across channels. Variables: reach (how many channels before and
    behind its own a window holds, where it reaches into neighbouring blocks and no further; else
    None), beta (0.75, which roots compute, or 0 for any other power). #}
{% import "common.cl" as common with context %}
{{ common.vector() }}
{# Lanes `shift` further in three blocks that follow one another: one instruction. #}
{% macro shifted(shift) %}
(V)(
{%- for i in range(shift, shift + block) -%}
{{ ", " if not loop.first }}{{ ["prev", "cur", "next"][(i + block) // block] }}.s{{ "%x" % (i % block) }}
{%- endfor -%}
)
{% endmacro %}
{% if reach %}
// 1 in lanes that are channels, 0 in those behind the last one.
static V lanes_of(int block, int channels) {
    float keep[{{ block }}];
    for (int i = 0; i < {{ block }}; i++) keep[i] = block >= 0 && block * {{ block }} + i < channels ? 1.0f : 0.0f;
    return vload{{ block }}(0, keep);
}
{% endif %}

{{ common.group() }}
__kernel void lrn(
    __global const S *restrict x, int x_base, int x_plane, int x_row, int channels,
    int before, int after, float alpha, float beta, float bias,
    __global S *restrict y, int y_base, int y_plane, int y_row, {{ common.grid() }}) {
{{ common.place() }}
{% if reach %}
    const int last = (channels - 1) / {{ block }};
    const V keep_prev = lanes_of(b - 1, channels), keep_cur = lanes_of(b, channels), keep_next = lanes_of(b + 1, channels);
{% endif %}
    for (int py = y0; py < y1; py++) {
        for (int px = x0; px < x1; px++) {
            __global const S *pixel = x + x_base + py * x_row + px * {{ block }};
            __global S *to = y + y_base + b * y_plane + py * y_row + px * {{ block }};
{% if reach %}
            const V value = GET(pixel + b * x_plane);
            const V left = GET(pixel + max(b - 1, 0) * x_plane) * keep_prev;
            const V right = GET(pixel + min(b + 1, last) * x_plane) * keep_next;
            const V prev = left * left, next = right * right, cur = value * value * keep_cur;
            V sum = cur;
{% for shift in range(-reach[0], reach[1] + 1) if shift %}
            sum += {{ shifted(shift) }};
{% endfor %}
{% else %}
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
{% endif %}
            const V scale = (V)(bias) + alpha * sum;
{% if beta %}
            const V root = sqrt(scale);
            PUT(to, value / (root * sqrt(root)));
{% else %}
            PUT(to, value * exp2(-beta * log2(scale)));
{% endif %}
        }
    }
}
