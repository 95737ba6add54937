{# Softmax along the middle axis of (outer, count, inner). Lanes of a vector lie along a line, of
    which there are `lines`, where it is a row (inner is 1); else beside each other, in as many lines.
    y may be x: no restrict.
    Variables: block (at most count in a row; else a divisor of inner), row, log. #}
{% import "common.cl" as common with context %}
{{ common.vector() }}{{ common.unaligned() }}
{% if row %}
{{ common.folded("largest", "a > b ? a : b") }}{{ common.folded("total", "a + b") }}
{% endif %}

{{ common.group() }}
__kernel void softmax(
    __global const S *x, int x_base, __global S *y, int y_base,
    int count, int inner, int lines, int chunk) {
    const int begin = (int)get_global_id(0) * chunk, end = min(begin + chunk, lines);
    for (int line = begin; line < end; line++) {
{% if row %}
        // The last vector ends where the row ends: some of its lanes are of the one before, too.
        const int step = {{ block }}, last = count - {{ block }}, at = line * count;
{% else %}
        const int step = inner, last = count * inner, groups = inner / {{ block }};
        const int at = line / groups * last + line % groups * {{ block }};
{% endif %}
        __global const S *in = x + x_base + at;
        __global S *out = y + y_base + at;
{% if row %}
        const V rest = LOAD(in + last);
{% endif %}
        V top = {{ "rest" if row else "(V)(-INFINITY)" }}, sum = (V)(0.0f);
        for (int k = 0; k < last; k += step) {
            const V v = LOAD(in + k);
            top = v > top ? v : top;
        }
{% if row %}
        top = (V)(largest(top));
{% endif %}
        int k = 0;
        for (; k < last; k += step) {
            const V e = exp(LOAD(in + k) - top);
{% if not log %}
            STORE(out + k, e);
{% endif %}
            sum += e;
        }
{% if row %}
        const V last_e = exp(rest - top);
        sum += {{ common.lanes() }} < (V)(k - last) ? (V)(0.0f) : last_e;
        sum = (V)(total(sum));
{% endif %}
{% if log %}
        const V shift = log(sum);  // small: after the largest is gone, for their sum would be rounded
        for (k = 0; k < last; k += step) STORE(out + k, LOAD(in + k) - top - shift);
{% if row %}
        STORE(out + last, rest - top - shift);
{% endif %}
{% else %}
        const V share = (V)(1.0f) / sum;
        for (k = 0; k < last; k += step) STORE(out + k, LOAD(out + k) * share);
{% if row %}
        STORE(out + last, last_e * share);
{% endif %}
{% endif %}
    }
}
