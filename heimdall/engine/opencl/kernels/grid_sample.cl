{# Samples of arrays (batch, channels, ...) at computed places: -1 and 1 are the edges of an axis.
    As PyTorch's grid_sample does it: nearest and linear samples move the place into the array, cubic
    ones only their taps. Variables: axes, taps (an axis: 1 nearest, 2 linear, 4 cubic), padding
    ("zeros", "border", "reflection"), align (the edges are the centres of the outermost elements). #}
{% import "common.cl" as common with context %}
{% import "storage.cl" as memory with context %}
{{ memory.types() }}
// NaN becomes 0, as in PyTorch.
static float inside(float at, int size) {
{% if padding == "reflection" %}
    const float low = {{ "0.0f" if align else "-0.5f" }}, span = {{ "size - 1.0f" if align else "size" }};
    if (at < low || at > low + span) {
        const float beyond = span > 0.0f ? fmod(fabs(at - low), 2.0f * span) : 0.0f;
        at = low + (beyond > span ? 2.0f * span - beyond : beyond);
    }
{% endif %}
    return at > 0.0f ? min(at, size - 1.0f) : 0.0f;
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
        float c{{ a }} = {{ "(g%d + 1.0f) * 0.5f * (size_%d - 1)"|format(a, a) if align else "((g%d + 1.0f) * size_%d - 1.0f) * 0.5f"|format(a, a) }};
{% if taps < 4 and padding != "zeros" %}
        c{{ a }} = inside(c{{ a }}, size_{{ a }});
{% endif %}
        const float floor{{ a }} = {{ "rint" if taps == 1 else "floor" }}(c{{ a }});
{% if padding == "zeros" or (taps == 4 and padding == "border") %}
        const int first{{ a }} = (int)(floor{{ a }} < -4.0f ? -4.0f : floor{{ a }} > size_{{ a }} ? size_{{ a }} + 4.0f : floor{{ a }}){{ " - 1" if taps == 4 }};  // an int may not hold it
{% else %}
        const int first{{ a }} = (int)floor{{ a }}{{ " - 1" if taps == 4 }};
{% endif %}
        float weights{{ a }}[{{ taps }}];
        weigh(c{{ a }} - floor{{ a }}, weights{{ a }});
{% endfor %}
        float sum = {{ "0.0f" if taps == 1 }}{% if taps > 1 %}{% for a in range(axes) %}{{ " + " if a }}0.0f * weights{{ a }}[0]{% endfor %}{% endif %};  // NaN at places that are not finite
{% for a in range(axes) %}
        for (int k{{ a }} = 0; k{{ a }} < {{ taps }}; k{{ a }}++) {
{% if taps < 4 or padding == "zeros" %}
            const int i{{ a }} = first{{ a }} + k{{ a }};
            if (i{{ a }} < 0 || i{{ a }} >= size_{{ a }}) continue;
{% else %}
            const int i{{ a }} = (int)inside((float)(first{{ a }} + k{{ a }}), size_{{ a }});
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
