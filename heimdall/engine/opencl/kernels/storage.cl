{# How tensors and weights lie in memory: as float, or as half (cl_khr_fp16), which every kernel
    widens to float before it computes and narrows when it stores. Sums, biases, slopes and scratch
    memory are always float. Variables: block (lanes of V), storage ("float" or "half"). #}
{% macro types() %}
{% if storage == "half" %}
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
{% endif %}
typedef {{ storage }} S;
typedef {{ storage }}{{ block if block > 1 else "" }} SV;
{% if storage == "half" %}
#define WIDE(v) convert_float{{ block if block > 1 else "" }}(v)
#define NARROW(v) convert_half{{ block if block > 1 else "" }}(v)
{% else %}
#define WIDE(v) (v)
#define NARROW(v) (v)
{% endif %}
{% endmacro %}
