{# Running sums along the middle axis of (outer, count, inner). Variables: exclusive, reverse. #}
{% import "common.cl" as common with context %}
{% import "storage.cl" as memory with context %}
{{ memory.types() }}
{{ common.group() }}
__kernel void cumulate(
    __global const S *restrict x, int x_base, __global S *restrict y, int y_base,
    int count, int inner, int lines) {
    const int line = get_global_id(0);
    if (line >= lines) return;
    const int at = line / inner * count * inner + line % inner;
    x += x_base + at;
    y += y_base + at;
    float sum = 0.0f;
    for (int k = 0; k < count; k++) {
        const int from = {{ "count - 1 - k" if reverse else "k" }};
        const float v = x[from * inner];
        y[from * inner] = {{ "sum" if exclusive else "sum + v" }};
        sum += v;
    }
}
