{# One expression over strided arrays (also copies, transposes and slices). Variables: code,
    result, operands and scalars (how many), axes (of the output, joined where possible).
    y may be an operand: no restrict. #}
{% import "common.cl" as common with context %}
{% import "functions.cl" as functions %}
{% import "storage.cl" as memory with context %}
typedef float V;
{{ memory.types() }}{{ functions.unit() }}{{ functions.error_function() if "ERF" in code }}
{% set last = axes - 1 %}

{{ common.group() }}
__kernel void elementwise_array(
{% for n in range(operands) %}
    __global const S *i{{ n }}, int base{{ n }},
{% for axis in range(axes) %}
    int step{{ n }}_{{ axis }},
{% endfor %}
{% endfor %}
{% for n in range(scalars) %}
    float s{{ n }},
{% endfor %}
    __global S *y, int y_base,
{% for axis in range(axes) %}
    int y_step_{{ axis }}, int size_{{ axis }},
{% endfor %}
    int outer, int chunk) {
    const int from = (int)get_global_id(0) * chunk, to = min(from + chunk, outer);
    for (int index = from; index < to; index++) {
        int rest = index;
        int y_at = y_base;
{% for n in range(operands) %}
        int at{{ n }} = base{{ n }};
{% endfor %}
{% for axis in range(last - 1, -1, -1) %}
        const int a{{ axis }} = rest % size_{{ axis }};
        rest /= size_{{ axis }};
        y_at += a{{ axis }} * y_step_{{ axis }};
{% for n in range(operands) %}
        at{{ n }} += a{{ axis }} * step{{ n }}_{{ axis }};
{% endfor %}
{% endfor %}
        for (int k = 0; k < size_{{ last }}; k++) {
{% for n in range(operands) %}
            const V v{{ n }} = i{{ n }}[at{{ n }} + k * step{{ n }}_{{ last }}];
{% endfor %}
            {{ code }}
            y[y_at + k * y_step_{{ last }}] = {{ result }};
        }
    }
}
