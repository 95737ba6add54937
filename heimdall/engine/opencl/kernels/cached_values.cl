{# Values of a cache (kv_heads, context, size) summed up by their shares (cached_softmax.cl), to
    (rows, kv_heads * group, size); a work-item some rows, and some lanes, of one head of values.
    Variables: block (lanes), wide (vectors of a work-item), taken (its rows), group. #}
{% import "common.cl" as common with context %}
{{ common.vector() }}{{ common.unaligned() }}

{{ common.group() }}
__kernel void cached_values(
    __global const S *restrict v, int v_base, __global const {{ Index }} *restrict last, int last_base,
    __global const float *restrict scores, int base, __global S *restrict y, int y_base,
    int rows, int kv_heads, int context, int room, int size) {
    const int lane = (int)get_global_id(0) * {{ block * wide }}, head = get_global_id(1);
    const int row = (int)get_global_id(2) * {{ taken }};
    if (lane >= size || head >= kv_heads || row >= rows) return;
    const int first = clamp((int)last[last_base] + 1 - rows, 0, context - rows);
    __global const S *from = v + v_base + head * context * size + lane;
    __global const float *share = scores + base + (head * {{ group }} * rows + row) * room;
{% for member in range(group) %}{% for r in range(taken) %}{% for i in range(wide) %}
    V sum{{ member }}_{{ r }}_{{ i }} = (V)(0.0f);
{% endfor %}{% endfor %}{% endfor %}
    // What a row does not see has no share yet: rows taken together go as far as the first of them.
    const int common_end = first + row + 1;
    for (int key = 0; key < common_end; key++, from += size) {
{% for i in range(wide) %}
        const V v{{ i }} = LOAD(from + {{ i * block }});
{% endfor %}
{% for member in range(group) %}{% for r in range(taken) %}
        {
            const V s = (V)(share[({{ member }} * rows + {{ r }}) * room + key]);
{% for i in range(wide) %}
            sum{{ member }}_{{ r }}_{{ i }} = fma(s, v{{ i }}, sum{{ member }}_{{ r }}_{{ i }});
{% endfor %}
        }
{% endfor %}{% endfor %}
    }
{% for later in range(1, taken) %}
    {
        const int key = common_end + {{ later - 1 }};
{% for i in range(wide) %}
        const V v{{ i }} = LOAD(from + {{ i * block }});
{% endfor %}
        from += size;
{% for member in range(group) %}{% for r in range(later, taken) %}
        {
            const V s = (V)(share[({{ member }} * rows + {{ r }}) * room + key]);
{% for i in range(wide) %}
            sum{{ member }}_{{ r }}_{{ i }} = fma(s, v{{ i }}, sum{{ member }}_{{ r }}_{{ i }});
{% endfor %}
        }
{% endfor %}{% endfor %}
    }
{% endfor %}
{% for member in range(group) %}{% for r in range(taken) %}{% for i in range(wide) %}
    STORE(y + y_base + (((row + {{ r }}) * kv_heads + head) * {{ group }} + {{ member }}) * size + lane + {{ i * block }},
        sum{{ member }}_{{ r }}_{{ i }});
{% endfor %}{% endfor %}{% endfor %}
}
