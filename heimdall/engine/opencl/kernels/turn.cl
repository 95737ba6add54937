{# Pairs of numbers of (rows, heads, size) turned by the angles of their positions; a work-item a row
    of a head. Variable: apart (pairs are neighbours, not halves). #}
{% import "common.cl" as common with context %}
{% import "storage.cl" as memory with context %}
{{ memory.types() }}

{{ common.group() }}
__kernel void turn(
    __global const S *restrict x, int x_base, __global const S *restrict cosines, int cos_base,
    __global const S *restrict sines, int sin_base, __global const {{ Index }} *restrict last, int last_base,
    __global S *restrict y, int y_base, int rows, int heads, int size, int half_, int positions) {
    const int index = get_global_id(0), row = index / heads;
    if (row >= rows) return;
    const int place = clamp((int)last[last_base] + 1 - rows + row, 0, positions - 1) * half_;
    __global const S *from = x + x_base + index * size, *c = cosines + cos_base + place;
    __global const S *s = sines + sin_base + place;
    __global S *to = y + y_base + index * size;
    for (int i = 0; i < half_; i++) {
{% if apart %}
        const int one = 2 * i, other = one + 1;
{% else %}
        const int one = i, other = i + half_;
{% endif %}
        const float a = from[one], b = from[other], cosine = c[i], sine = s[i];
        to[one] = a * cosine - b * sine;
        to[other] = b * cosine + a * sine;
    }
    for (int i = 2 * half_; i < size; i++) to[i] = from[i];
}
