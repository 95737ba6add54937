{# Layer normalisation of rows: (x - mean) / sqrt(variance + epsilon) * scale + shift. A work-item does
    `chunk` rows. Variables: block (lanes of a vector, at most as many as a row has), shifted (whether
    there is a shift), centred (else the mean counts as 0). #}
{% import "common.cl" as common with context %}
{{ common.vector() }}{{ common.unaligned() }}{{ common.folded("total", "a + b") }}
#define FRESH(v) ({{ common.lanes() }} < (V)(known) ? (V)(0.0f) : (v))
#define RESULT(v, k) \
    ((v - (V)(mean)) * (V)(inverse) * LOAD(scale + scale_base + k){{ " + LOAD(shift + shift_base + k)" if shifted }})

{{ common.group() }}
__kernel void normalise(
    __global const S *restrict x, int x_base, __global const S *restrict scale, int scale_base,
{% if shifted %}
    __global const S *restrict shift, int shift_base,
{% endif %}
    __global S *restrict y, int y_base, int count, int lines, int chunk, float epsilon) {
    const int begin = (int)get_global_id(0) * chunk, end = min(begin + chunk, lines);
    // The last vector ends where the row ends: the lanes of the one before, too, do not
    // count. They may be infinite: a product with 0 would be NaN.
    const int last = count - {{ block }}, known = (last + {{ block - 1 }}) / {{ block }} * {{ block }} - last;
    for (int line = begin; line < end; line++) {
        __global const S *in = x + x_base + line * count;
        __global S *out = y + y_base + line * count;
        const V rest = LOAD(in + last);
{% if centred %}
        V sum = FRESH(rest);
        for (int k = 0; k < last; k += {{ block }}) sum += LOAD(in + k);
        const float mean = total(sum) / count;
{% else %}
        const float mean = 0.0f;
{% endif %}
        const V off = rest - (V)(mean);
        V squares = FRESH(off * off);
        for (int k = 0; k < last; k += {{ block }}) {
            const V d = LOAD(in + k) - (V)(mean);
            squares = fma(d, d, squares);
        }
        const float inverse = 1.0f / sqrt(total(squares) / count + epsilon);
        for (int k = 0; k < last; k += {{ block }}) STORE(out + k, RESULT(LOAD(in + k), k));
        STORE(out + last, RESULT(rest, last));
    }
}
