{# Scores of queries (rows, kv_heads * group, size) against a block of keys of a cache (kv_heads,
    context, size): to scratch memory, a line of `room` for each row of each head, head by head. What
    a row must not see yet is -INFINITY; blocks that none may see are left out.
    Variables: block (lanes, which divide size), vectors (of a key), group (heads of queries for one
    of keys), keys (of a block). #}
{% import "common.cl" as common with context %}
{{ common.vector() }}{{ common.unaligned() }}
{{ common.folded("total", "a + b") }}

{{ common.group() }}
__kernel void cached_scores(
    __global const S *restrict q, int q_base, __global const S *restrict k, int k_base,
    __global const {{ Index }} *restrict last, int last_base, __global float *restrict scores, int base,
    int rows, int kv_heads, int context, int room, int size, float scale) {
    const int begin = (int)get_global_id(0) * {{ keys }}, head = get_global_id(1);
    const int first = clamp((int)last[last_base] + 1 - rows, 0, context - rows);
    if (begin >= first + rows || head >= kv_heads) return;
    for (int key = begin; key < begin + {{ keys }}; key++) {
        __global float *to = scores + base + head * {{ group }} * rows * room + key;
        if (key >= first + rows) {
            for (int line = 0; line < {{ group }} * rows; line++) to[line * room] = -INFINITY;
            continue;
        }
        __global const S *from = k + k_base + (head * context + key) * size;
{% for i in range(vectors) %}
        const V k{{ i }} = LOAD(from + {{ i * block }});
{% endfor %}
        for (int row = 0; row < rows; row++) {
{% for member in range(group) %}
            {
                __global const S *own = q + q_base
                    + ((row * kv_heads + head) * {{ group }} + {{ member }}) * size;
                V sum = k0 * LOAD(own);
{% for i in range(1, vectors) %}
                sum = fma(k{{ i }}, LOAD(own + {{ i * block }}), sum);
{% endfor %}
                to[({{ member }} * rows + row) * room] =
                    key > first + row ? -INFINITY : total(sum) * scale;
            }
{% endfor %}
        }
    }
}
