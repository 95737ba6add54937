{# Rows (rows, heads, size) into a cache (heads, room, size), up to row `last`; a work-item a row of
    a head. #}
{% import "common.cl" as common with context %}
{% import "storage.cl" as memory with context %}
{{ memory.types() }}

{{ common.group() }}
__kernel void append(
    __global const S *restrict x, int x_base, __global const {{ Index }} *restrict last, int last_base,
    __global S *y, int y_base, int heads, int room, int size, int rows) {
    const int index = get_global_id(0), row = index / heads, head = index % heads;
    if (row >= rows) return;
    const int first = clamp((int)last[last_base] + 1 - rows, 0, room - rows);
    __global const S *from = x + x_base + index * size;
    __global S *to = y + y_base + (head * room + first + row) * size;
    for (int i = 0; i < size; i++) to[i] = from[i];
}
