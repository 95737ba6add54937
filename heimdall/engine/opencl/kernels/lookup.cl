{# Lines of a table by indices: negative ones count from the end, those outside take the nearest. A
    work-item a line. #}
{% import "common.cl" as common with context %}
{% import "storage.cl" as memory with context %}
{{ memory.types() }}

{{ common.group() }}
__kernel void lookup(
    __global const S *restrict x, int x_base, __global const {{ Index }} *restrict places, int places_base,
    __global S *restrict y, int y_base, int count, int size, int lines) {
    const int line = get_global_id(0);
    if (line >= lines) return;
    const int place = (int)places[places_base + line];
    const int from = clamp(place < 0 ? place + count : place, 0, count - 1);
    for (int i = 0; i < size; i++) y[y_base + line * size + i] = x[x_base + from * size + i];
}
