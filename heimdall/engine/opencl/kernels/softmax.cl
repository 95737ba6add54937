{# Softmax along the middle axis of (outer, count, inner). Variable: log. #}
{% import "common.cl" as common with context %}
{% import "storage.cl" as memory with context %}
{{ memory.types() }}
{{ common.group() }}
__kernel void softmax(
    __global const S *restrict x, int x_base, __global S *restrict y, int y_base,
    int count, int inner, int lines) {
    const int line = get_global_id(0);
    if (line >= lines) return;
    const int at = line / inner * count * inner + line % inner;
    x += x_base + at;
    y += y_base + at;
    float top = -INFINITY, sum = 0.0f;
    for (int k = 0; k < count; k++) top = fmax(top, (float)x[k * inner]);
    for (int k = 0; k < count; k++) {
        const float e = exp(x[k * inner] - top);
        y[k * inner] = e;
        sum += e;
    }
{% if log %}
    const float shift = top + log(sum);
    for (int k = 0; k < count; k++) y[k * inner] = x[k * inner] - shift;
{% else %}
    for (int k = 0; k < count; k++) y[k * inner] /= sum;
{% endif %}
}
