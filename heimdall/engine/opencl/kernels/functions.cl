{# What the code of functions.py is written with, for a value of type V. #}
{% macro unit() %}
#define UNIT(V, g) ((g) < (V)(0.0f) ? (V)(0.0f) : ((g) > (V)(1.0f) ? (V)(1.0f) : (g)))
{% endmacro %}
