{# Layer normalisation of rows: (x - mean) / sqrt(variance + epsilon) * scale + shift. A work-item of a
    CPU does `chunk` rows by vectors; on a GPU the 64 of a group do one together.
    Variable: shifted (whether there is a shift). #}
{% import "common.cl" as common with context %}
{% set together = device == "gpu" %}
{{ common.vector() }}{{ common.unaligned() }}
{% if together %}
static float total(float v, __local float *parts) {
    const int lane = get_local_id(0);
    parts[lane] = v;
    for (int left = 32; left > 0; left /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < left) parts[lane] += parts[lane + left];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const float sum = parts[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum;
}
{% set every = "for (int k = get_local_id(0); k < count; k += 64)" %}
{% set parts = ", parts" %}
{% else %}
{{ common.folded("total", "a + b") }}
{% set every = "for (int k = 0; k < last; k += %d)" | format(block) %}
{% set parts = "" %}
{% endif %}
#define RESULT(v, k) \
    ((v - (V)(mean)) * (V)(inverse) * LOAD(scale + scale_base + k){{ " + LOAD(shift + shift_base + k)" if shifted }})

{{ common.group() }}
__kernel void normalise(
    __global const S *restrict x, int x_base, __global const S *restrict scale, int scale_base,
{% if shifted %}
    __global const S *restrict shift, int shift_base,
{% endif %}
    __global S *restrict y, int y_base, int count, int lines, int chunk, float epsilon) {
{% if together %}
    __local float parts[64];
    const int begin = get_global_id(0) / 64, end = begin + 1;
{% else %}
    const int begin = (int)get_global_id(0) * chunk, end = min(begin + chunk, lines);
    // The last vector ends where the row ends: only its `fresh` lanes are not of the one before, too.
    const int last = count - {{ block }}, known = (last + {{ block - 1 }}) / {{ block }} * {{ block }} - last;
    const V fresh = {{ common.lanes() }} < (V)(known) ? (V)(0.0f) : (V)(1.0f);
{% endif %}
    for (int line = begin; line < end; line++) {
        __global const S *in = x + x_base + line * count;
        __global S *out = y + y_base + line * count;
{% if together %}
        V sum = 0.0f, squares = 0.0f;
{% else %}
        const V rest = LOAD(in + last);
        V sum = rest * fresh;
{% endif %}
        {{ every }} sum += LOAD(in + k);
        const float mean = total(sum{{ parts }}) / count;
{% if not together %}
        V squares = (rest - (V)(mean)) * (rest - (V)(mean)) * fresh;
{% endif %}
        {{ every }} {
            const V d = LOAD(in + k) - (V)(mean);
            squares = fma(d, d, squares);
        }
        const float inverse = 1.0f / sqrt(total(squares{{ parts }}) / count + epsilon);
        {{ every }} STORE(out + k, RESULT(LOAD(in + k), k));
{% if not together %}
        STORE(out + last, RESULT(rest, last));
{% endif %}
    }
}
