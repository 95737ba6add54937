{# Product of two computed matrices, batched. One work-item does a row of the result. #}
{% import "common.cl" as common with context %}
{% import "storage.cl" as memory with context %}
{{ memory.types() }}
{{ common.group() }}
__kernel void matmul(
    __global const S *restrict a, int a_base, __global const S *restrict b, int b_base,
    __global S *restrict y, int y_base, int rows, int depth, int columns, int lines) {
    const int line = get_global_id(0);
    if (line >= lines) return;
    a += a_base + line * depth;
    b += b_base + line / rows * depth * columns;
    y += y_base + line * columns;
{% if storage == "half" %}
    for (int from = 0; from < columns; from += 16) {  // sums are float
        const int count = min(16, columns - from);
        float sums[16];
        for (int n = 0; n < count; n++) sums[n] = 0.0f;
        for (int k = 0; k < depth; k++) {
            const float v = a[k];
            for (int n = 0; n < count; n++) sums[n] = fma(v, (float)b[k * columns + from + n], sums[n]);
        }
        for (int n = 0; n < count; n++) y[from + n] = sums[n];
    }
{% else %}
    for (int n = 0; n < columns; n++) y[n] = 0.0f;
    for (int k = 0; k < depth; k++) {
        const float v = a[k];
        for (int n = 0; n < columns; n++) y[n] = fma(v, b[k * columns + n], y[n]);
    }
{% endif %}
}
