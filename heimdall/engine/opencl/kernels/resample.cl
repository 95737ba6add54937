{# Weighted sums of `taps` entries along the middle axis of (outer, size, inner). #}
{% import "common.cl" as common with context %}
{% import "storage.cl" as memory with context %}
{{ memory.types() }}
{{ common.group() }}
__kernel void resample(
    __global const S *restrict x, int x_base, __global const int *restrict entries,
    __global const float *restrict weights, int taps, int size, int out, int inner,
    __global S *restrict y, int y_base, int outputs, int chunk) {
    const int from = (int)get_global_id(0) * chunk, to = min(from + chunk, outputs);
    for (int index = from; index < to; index++) {
        const int line = index / inner, o = line % out;
        __global const S *source = x + x_base + line / out * size * inner + index % inner;
        float sum = 0.0f;
        for (int k = o * taps; k < (o + 1) * taps; k++)
            sum = fma((float)source[entries[k] * inner], weights[k], sum);
        y[y_base + index] = sum;
    }
}
