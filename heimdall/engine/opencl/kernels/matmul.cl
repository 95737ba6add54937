{# Product of two computed matrices, batched. One work-item does a row of the result. #}
{% import "common.cl" as common with context %}

{{ common.group() }}
__kernel void matmul(
    __global const float *restrict a, int a_base, __global const float *restrict b, int b_base,
    __global float *restrict y, int y_base, int rows, int depth, int columns, int lines) {
    const int line = get_global_id(0);
    if (line >= lines) return;
    a += a_base + line * depth;
    b += b_base + line / rows * depth * columns;
    y += y_base + line * columns;
    for (int n = 0; n < columns; n++) y[n] = 0.0f;
    for (int k = 0; k < depth; k++) {
        const float v = a[k];
        for (int n = 0; n < columns; n++) y[n] = fma(v, b[k * columns + n], y[n]);
    }
}
