{# Samples of arrays (batch, channels, ...) at computed places: -1 and 1 are the edges of an axis.
    Variables: axes, taps (an axis: 1 nearest, 2 linear, 4 cubic), padding ("zeros", "border",
    "reflection"), align (the edges are the centres of the outermost elements). #}
{% import "common.cl" as common with context %}
{% import "storage.cl" as memory with context %}
{{ memory.types() }}
static float reflected(float at, float low, float high) {
    const float span = high - low;
    if (span <= 0.0f) return low;
    const float beyond = at < low ? low - at : at - high;
    if (beyond <= 0.0f) return at;
    const int turns = (int)(beyond / span);
    const float rest = beyond - turns * span;
    return (turns % 2 == 0) == (at < low) ? low + rest : high - rest;
}

static float inside(float at, int size) {
{% if padding == "border" %}
{% set low, high = ("0.0f", "size - 1.0f") if align else ("-0.5f", "size - 0.5f") %}
    return at < {{ low }} || at > {{ high }} ? clamp(at, 0.0f, size - 1.0f) : at;
{% elif padding == "reflection" %}
    return reflected(at, {{ "0.0f, size - 1.0f" if align else "-0.5f, size - 0.5f" }});
{% else %}
    return at;
{% endif %}
}

static void weigh(float share, float *weights) {
{% if taps == 1 %}
    weights[0] = 1.0f;
{% elif taps == 2 %}
    weights[0] = 1.0f - share;
    weights[1] = share;
{% else %}
    const float a = -0.75f;
    for (int k = 0; k < 4; k++) {
        const float d = fabs(share + 1.0f - k);
        weights[k] = d <= 1.0f ? ((a + 2.0f) * d - (a + 3.0f)) * d * d + 1.0f
                               : ((a * d - 5.0f * a) * d + 8.0f * a) * d - 4.0f * a;
    }
{% endif %}
}

{{ common.group() }}
__kernel void grid_sample(
    __global const S *restrict x, int x_base, __global const S *restrict grid, int grid_base,
{% for a in range(axes) %}
    int size_{{ a }},
{% endfor %}
    int channels, int points, __global S *restrict y, int y_base, int outputs, int chunk) {
    const int from = (int)get_global_id(0) * chunk, to = min(from + chunk, outputs);
    const int volume = {% for a in range(axes) %}size_{{ a }}{{ " * " if not loop.last }}{% endfor %};
    for (int index = from; index < to; index++) {
        const int plane = index / points, image = plane / channels;
        __global const S *place = grid + grid_base + (image * points + index % points) * {{ axes }};
        __global const S *source = x + x_base + plane * volume;
{% for a in range(axes) %}
        const float g{{ a }} = place[{{ axes - 1 - a }}];
        const float c{{ a }} = inside({{ "rint" if taps == 1 }}(
            {{ "(g%d + 1.0f) * 0.5f * (size_%d - 1)"|format(a, a) if align else "((g%d + 1.0f) * size_%d - 1.0f) * 0.5f"|format(a, a) }}),
            size_{{ a }});
        const float floor{{ a }} = {{ "rint" if taps == 1 else "floor" }}(c{{ a }});
        const int first{{ a }} = (int)floor{{ a }} - {{ 1 if taps == 4 else 0 }};
        float weights{{ a }}[{{ taps }}];
        weigh(c{{ a }} - floor{{ a }}, weights{{ a }});
{% endfor %}
        float sum = 0.0f;
{% for a in range(axes) %}
        for (int k{{ a }} = 0; k{{ a }} < {{ taps }}; k{{ a }}++) {
{% if padding == "zeros" %}
            const int i{{ a }} = first{{ a }} + k{{ a }};
            if (i{{ a }} < 0 || i{{ a }} >= size_{{ a }}) continue;
{% else %}
            const int i{{ a }} =
                clamp((int)inside((float)(first{{ a }} + k{{ a }}), size_{{ a }}), 0, size_{{ a }} - 1);
{% endif %}
{% endfor %}
            int at = 0;
            float weight = 1.0f;
{% for a in range(axes) %}
            at = at * size_{{ a }} + i{{ a }};
            weight *= weights{{ a }}[k{{ a }}];
{% endfor %}
            sum = fma((float)source[at], weight, sum);
{% for a in range(axes) %}
        }
{% endfor %}
        y[y_base + index] = sum;
    }
}
