{# Where the largest or smallest value lies along the middle axis of (outer, count, inner).
    Variable: better (how `v` replaces `best`). #}
{% import "common.cl" as common with context %}
{% import "storage.cl" as memory with context %}
{{ memory.types() }}
{{ common.group() }}
__kernel void arg(
    __global const S *restrict x, int x_base, __global S *restrict y, int y_base,
    int count, int inner, int lines) {
    const int line = get_global_id(0);
    if (line >= lines) return;
    x += x_base + line / inner * count * inner + line % inner;
    float best = x[0];
    int found = 0;
    for (int k = 1; k < count; k++) {
        const float v = x[k * inner];
        if (v {{ better }} best) {
            best = v;
            found = k;
        }
    }
    y[y_base + line] = found;
}
