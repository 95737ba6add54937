{# Reduction of strided arrays. Variables: join, start, kept and reduced (numbers of axes). #}
{% import "common.cl" as common with context %}
{% import "storage.cl" as memory with context %}
{{ memory.types() }}#define JOIN(a, b) ({{ join }})

{{ common.group() }}
__kernel void reduce_array(
    __global const S *restrict x, int x_base,
{% for axis in range(kept) %}
    int size_{{ axis }}, int step_{{ axis }},
{% endfor %}
{% for axis in range(reduced) %}
    int depth_{{ axis }}, int deep_{{ axis }},
{% endfor %}
    __global S *restrict y, int y_base, int outputs, int chunk, float factor) {
    const int from = (int)get_global_id(0) * chunk, to = min(from + chunk, outputs);
    for (int index = from; index < to; index++) {
        int rest = index, at = x_base;
{% for axis in range(kept - 1, -1, -1) %}
        at += rest % size_{{ axis }} * step_{{ axis }};
        rest /= size_{{ axis }};
{% endfor %}
        float total = {{ start }};
{% for axis in range(reduced) %}
        for (int r{{ axis }} = 0; r{{ axis }} < depth_{{ axis }}; r{{ axis }}++)
{% endfor %}
        {
            const float v = x[at{% for axis in range(reduced) %} + r{{ axis }} * deep_{{ axis }}{% endfor %}];
            total = JOIN(total, v);
        }
        y[y_base + index] = total * factor;
    }
}
