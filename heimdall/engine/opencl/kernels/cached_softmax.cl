{# Softmax in place of lines of scores (cached_scores.cl), each as far as its row sees; a work-item a
    line. Variable: block (lanes; divides what a line is filled up to). #}
{% import "common.cl" as common with context %}
{{ common.vector() }}{{ common.folded("largest", "a > b ? a : b") }}{{ common.folded("sum_of", "a + b") }}

{{ common.group() }}
__kernel void cached_softmax(
    __global const {{ Index }} *restrict last, int last_base, __global float *restrict scores, int base,
    int rows, int context, int room, int lines) {
    const int line = get_global_id(0);
    if (line >= lines) return;
    const int first = clamp((int)last[last_base] + 1 - rows, 0, context - rows);
    const int count = first + line % rows + 1;
    __global float *x = scores + base + line * room;
    V top = KEPT(x);
    for (int i = {{ block }}; i < count; i += {{ block }}) {
        const V v = KEPT(x + i);
        top = v > top ? v : top;
    }
    const V most = (V)(largest(top));
    V sum = (V)(0.0f);
    for (int i = 0; i < count; i += {{ block }}) {
        const V e = exp(KEPT(x + i) - most);
        KEEP(x + i, e);
        sum += e;
    }
    const V share = (V)(1.0f / sum_of(sum));
    for (int i = 0; i < count; i += {{ block }}) KEEP(x + i, KEPT(x + i) * share);
}
