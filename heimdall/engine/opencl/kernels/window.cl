{# Windows over arrays (batch, channels, ...) of any number of axes: pools, and convolutions with
    weights that are computed. Variables: axes, mode ("max", "average", "lp", "conv"), counted
    (average over taps in the padding too), transposed and bias (of a convolution). #}
{% import "common.cl" as common with context %}
{% import "storage.cl" as memory with context %}
{{ memory.types() }}
{{ common.group() }}
__kernel void window(
    __global const S *restrict x, int x_base,
{% if mode == "conv" %}
    __global const S *restrict w, int w_base,
{% if bias %}
    __global const S *restrict b, int b_base,
{% endif %}
    int group_in, int group_out, int groups,
{% endif %}
{% for a in range(axes) %}
    int size_{{ a }}, int out_{{ a }}, int kernel_{{ a }}, int stride_{{ a }}, int dilation_{{ a }},
    int before_{{ a }}, int after_{{ a }},
{% endfor %}
    int channels, float power, __global S *restrict y, int y_base, int outputs, int chunk) {
    const int from = (int)get_global_id(0) * chunk, to = min(from + chunk, outputs);
    const int volume = {% for a in range(axes) %}size_{{ a }}{{ " * " if not loop.last }}{% endfor %};
    for (int index = from; index < to; index++) {
        int rest = index;
{% for a in range(axes - 1, -1, -1) %}
        const int o{{ a }} = rest % out_{{ a }};
        rest /= out_{{ a }};
{% endfor %}
        float sum = {{ "-INFINITY" if mode == "max" else "0.0f" }};
{% if mode == "average" %}
        int taps = 1;
{% for a in range(axes) %}
        {
            int inside = 0;
            for (int k = 0; k < kernel_{{ a }}; k++) {
                const int i = o{{ a }} * stride_{{ a }} - before_{{ a }} + k * dilation_{{ a }};
                inside += {{ "i < size_%d + after_%d"|format(a, a) if counted else "i >= 0 && i < size_%d"|format(a) }};
            }
            taps *= inside;
        }
{% endfor %}
{% endif %}
{% if mode == "conv" %}
        const int c = rest % channels, group = c / group_out;
{% if bias %}
        sum = b[b_base + c];
{% endif %}
        for (int ic = 0; ic < group_in; ic++) {
        const int xc = group * group_in + ic;
        const int plane = (rest / channels * groups * group_in + xc) * volume;
        const int kernel_at = {{ "xc * group_out + c % group_out" if transposed else "c * group_in + ic" }};
{% else %}
        {
        const int plane = rest * volume;
{% endif %}
{% for a in range(axes) %}
        for (int k{{ a }} = 0; k{{ a }} < kernel_{{ a }}; k{{ a }}++) {
{% if transposed %}
            int i{{ a }} = o{{ a }} + before_{{ a }} - k{{ a }} * dilation_{{ a }};
            if (i{{ a }} % stride_{{ a }}) continue;
            i{{ a }} /= stride_{{ a }};
{% else %}
            const int i{{ a }} = o{{ a }} * stride_{{ a }} - before_{{ a }} + k{{ a }} * dilation_{{ a }};
{% endif %}
            if (i{{ a }} < 0 || i{{ a }} >= size_{{ a }}) continue;
{% endfor %}
            int at = 0;
{% for a in range(axes) %}
            at = at * size_{{ a }} + i{{ a }};
{% endfor %}
            const float v = x[x_base + plane + at];
{% if mode == "conv" %}
            int tap = kernel_at;
{% for a in range(axes) %}
            tap = tap * kernel_{{ a }} + k{{ a }};
{% endfor %}
            sum = fma(v, (float)w[w_base + tap], sum);
{% elif mode == "max" %}
            sum = (v > sum) | (v != v) ? v : sum;
{% elif mode == "lp" %}
            sum += pow(fabs(v), power);
{% else %}
            sum += v;
{% endif %}
{% for a in range(axes) %}
        }
{% endfor %}
        }
        y[y_base + index] = {{ {"average": "sum / taps", "lp": "pow(sum, 1.0f / power)"}.get(mode, "sum") }};
    }
}
