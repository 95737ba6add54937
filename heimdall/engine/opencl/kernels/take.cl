{# Numbers picked along axes: by a table of source indices (-1: the fill value) or in order.
    Variable: tables (whether each axis has one). #}
{% import "common.cl" as common with context %}
{% import "storage.cl" as memory with context %}
{{ memory.types() }}{% set axes = tables | length %}

{{ common.group() }}
__kernel void take(
    __global const S *restrict x, int x_base,
{% for axis in range(axes) %}
{% if tables[axis] %}
    __global const int *restrict table{{ axis }},
{% endif %}
    int size_{{ axis }}, int step_{{ axis }},
{% endfor %}
    float fill, __global S *restrict y, int y_base, int outputs, int chunk) {
    const int from = (int)get_global_id(0) * chunk, to = min(from + chunk, outputs);
    for (int index = from; index < to; index++) {
        int rest = index, at = x_base;
        bool inside = true;
{% for axis in range(axes - 1, -1, -1) %}
{% if tables[axis] %}
        const int s{{ axis }} = table{{ axis }}[rest % size_{{ axis }}];
        inside = inside && s{{ axis }} >= 0;
{% else %}
        const int s{{ axis }} = rest % size_{{ axis }};
{% endif %}
        at += s{{ axis }} * step_{{ axis }};
        rest /= size_{{ axis }};
{% endfor %}
        y[y_base + index] = inside ? (float)x[at] : fill;
    }
}
