{# What the kernels over pictures share. Template variables: block (lanes of a vector), device
    ("cpu": one work-item a work-group; "gpu": several, some beyond the picture).
    A work-item handles chunk_w x chunk_h pixels of one channel block. #}

{% import "storage.cl" as memory with context %}
{# GET and PUT: a vector of a tensor; KEPT and KEEP: of scratch memory, which is float. #}
{% macro vector() %}
{% if block == 1 %}
typedef float V;
{% else %}
typedef float{{ block }} V;
{% endif %}
{{ memory.types() }}
{% if block == 3 %}
#define GET(p) WIDE(vload3(0, p))
#define PUT(p, v) vstore3(NARROW(v), 0, p)
{% else %}
#define GET(p) WIDE(*(__global const SV *)(p))
#define PUT(p, v) (*(__global SV *)(p) = NARROW(v))
#define KEPT(p) (*(__global const V *)(p))
#define KEEP(p, v) (*(__global V *)(p) = (v))
{% endif %}
{% endmacro %}

{# LOAD and STORE: a vector of an array, whose lines may begin anywhere. #}
{% macro unaligned() %}
{% if block == 1 %}
#define LOAD(p) WIDE(*(p))
#define STORE(p, v) (*(p) = NARROW(v))
{% else %}
#define LOAD(p) WIDE(vload{{ block }}(0, p))
#define STORE(p, v) vstore{{ block }}(NARROW(v), 0, p)
{% endif %}
{% endmacro %}

{# The number of each lane. #}
{% macro lanes() %}(V)({{ range(block) | join(".0f, ") }}.0f){% endmacro %}

{# A function that joins the lanes of a vector to one number; `join` does two, a and b. #}
{% macro folded(name, join) %}
#define JOIN_{{ name }}(a, b) ({{ join }})
static float {{ name }}(V v) {
{% set whole = namespace(name="v") %}
{% for half in (8, 4, 2, 1) if half < block %}
    const float{{ half if half > 1 else "" }} v{{ half }} = JOIN_{{ name }}({{ whole.name }}.lo, {{ whole.name }}.hi);
{% set whole.name = "v%d" | format(half) %}
{% endfor %}
    return {{ whole.name }};
}
{% endmacro %}

{% macro group() %}
{% if device == "cpu" %}
__attribute__((reqd_work_group_size(1, 1, 1)))
{% endif %}
{% endmacro %}

{% macro grid() %}int width, int height, int chunk_w, int chunk_h{% endmacro %}

{% macro place() %}
    const int b = get_global_id(2);
    const int x0 = (int)get_global_id(0) * chunk_w, x1 = min(x0 + chunk_w, width);
    const int y0 = (int)get_global_id(1) * chunk_h, y1 = min(y0 + chunk_h, height);
{% endmacro %}

{# What a kernel along the middle axis of (outer, count, inner) begins with, a work-item a line:
    `at` is its first element, `inner` its step. #}
{% macro along(name) %}
{{ memory.types() }}
{{ group() }}
__kernel void {{ name }}(
    __global const S *restrict x, int x_base, __global S *restrict y, int y_base,
    int count, int inner, int lines) {
    const int line = get_global_id(0);
    if (line >= lines) return;
    const int at = line / inner * count * inner + line % inner;
    x += x_base + at;
{% endmacro %}
